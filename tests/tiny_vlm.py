"""A vision-language model small enough to be made by a test: LLaVA with random weights over a vocabulary of plain words.

What it says is nonsense that hangs on the picture and on nothing else, so that a caption that moved to another row is seen.
"""

from __future__ import annotations

from pathlib import Path

SYLLABLES = ("ba", "ko", "mi", "ru", "ta", "lo", "ne", "si", "du", "fa", "ge", "po", "vi", "wu", "ze", "ho")
WORDS = tuple(first + second for first in SYLLABLES for second in SYLLABLES)
SPECIAL = ("<unk>", "<s>", "</s>", "<pad>", "<image>")
SIDE, PATCH = 28, 14
TEMPLATE = (
    "{% for message in messages %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endfor %}"
)


def write_tiny_vlm(folder: Path, seed: int = 7) -> Path:
    """Config, processor and weights, as a model's folder holds them."""
    import torch
    from safetensors.torch import save_file
    from transformers import CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer()
    vision = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=1,
        image_size=SIDE,
        patch_size=PATCH,
        projection_dim=32,
    )
    text = LlamaConfig(
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,  # heads of 32: the CPU kernels take none that is smaller
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=3,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=4,
        image_seq_length=(SIDE // PATCH) ** 2,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
    )
    config.architectures = ["LlavaForConditionalGeneration"]
    torch.manual_seed(seed)
    model = LlavaForConditionalGeneration(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                weight.normal_(0.0, 0.3)
            elif name.endswith("bias"):
                weight.zero_()
        model.lm_head.weight[: len(SPECIAL)] = 0.0  # of all tokens the likeliest is a word then
    config.save_pretrained(folder)
    # vLLM knows the vision tower by the name that its checkpoints have
    weights = {name.replace("vision_tower.", "vision_tower.vision_model.", 1): weight for name, weight in model.state_dict().items()}
    save_file({name: weight.contiguous() for name, weight in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    size = {"height": SIDE, "width": SIDE}
    images = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=size)
    LlavaProcessor(
        images,
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        chat_template=TEMPLATE,
        num_additional_image_tokens=1,
    ).save_pretrained(folder)
    return folder


def _tokenizer():  # type: ignore[no-untyped-def]
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(WordLevel({word: at for at, word in enumerate((*SPECIAL, *WORDS))}, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=["<image>"],
    )
