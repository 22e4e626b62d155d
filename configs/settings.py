"""The configuration: one YAML file a run, every key typed, an unknown key an error that names the nearest right one.

Precedence: command line > environment (`RAYDEX_<SECTION>__<KEY>`) > YAML file > defaults. CPU only is the default; GPUs are one number
a stage (`stages.embed.gpus`). What a stage reads of it goes into the stage's fingerprint, so that changing it re-runs from there on.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, YamlConfigSettingsSource

from raydex.ir.errors import ConfigError
from raydex.kernels.limits import Limits


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ListSettings(Section):
    """What a source lists. `change` is how an unchanged local file is recognised: its hash, or its size and mtime (contracts 4)."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    follow_symlinks: bool = False
    change: Literal["hash", "mtime"] = "hash"
    threads: int = Field(default=4, ge=1, le=64)
    max_delete_share: float = Field(default=0.3, ge=0.0, le=1.0)


class ObjectSettings(Section):
    """Originals by content hash; `keep_originals: false` keeps references only."""

    keep_originals: bool = True
    uri: str = ""


class LimitSettings(Section):
    """Limits on one document; see `kernels/limits.py`."""

    input_bytes: int = Field(default=Limits().input_bytes, gt=0)
    text_bytes: int = Field(default=Limits().text_bytes, gt=0)
    blocks: int = Field(default=Limits().blocks, gt=0)
    symbols: int = Field(default=Limits().symbols, gt=0)
    depth: int = Field(default=Limits().depth, gt=0)
    pages: int = Field(default=Limits().pages, gt=0)
    seconds: float = Field(default=Limits().seconds, gt=0, le=86_400)
    memory_bytes: int = Field(default=Limits().memory_bytes, gt=0)
    attempts: int = Field(default=Limits().attempts, ge=1)
    nesting: int = Field(default=Limits().nesting, ge=0)
    members: int = Field(default=Limits().members, gt=0)
    member_bytes: int = Field(default=Limits().member_bytes, gt=0)
    members_bytes: int = Field(default=Limits().members_bytes, gt=0)
    ratio: int = Field(default=Limits().ratio, gt=0)
    image_pixels: int = Field(default=Limits().image_pixels, gt=0)
    cells: int = Field(default=Limits().cells, gt=0)
    parts_depth: int = Field(default=Limits().parts_depth, gt=0, le=100)
    attachments: int = Field(default=Limits().attachments, gt=0)
    records: int = Field(default=Limits().records, gt=0)

    def to_limits(self) -> Limits:
        return Limits(**self.model_dump())


class OcrSettings(Section):
    """Text of pages and images that have none. `engine`, `layout`: names of kernels/ocr.py and kernels/layout.py, or none. `device` auto is
    CUDA where the stage has GPUs. `images` false leaves images inside documents unread; those below `least_side` pixels always are."""

    engine: str = "rapidocr"
    layout: str = "rapid-layout"
    device: str = "auto"
    threads: int = Field(default=1, ge=1, le=256)
    images: bool = True
    least_side: int = Field(default=32, ge=1)
    batch_images: int = Field(default=16, ge=1, le=1024)


class CaptionSettings(Section):
    """Captions of images. `model`: a vision-language model (name or path) that vLLM runs, or that the OpenAI-compatible server under
    `base_url` offers; empty: captions are unavailable. `engine`: arguments of vLLM's engine, as vLLM names them."""

    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    prompt: str = "Describe this image for a search index, in one or two plain sentences."
    max_tokens: int = Field(default=96, ge=1, le=4096)
    long_side: int = Field(default=1024, ge=16, le=8192)
    batch_size: int = Field(default=16, ge=1)
    engine: dict[str, Any] = Field(default_factory=dict)


class DoclingSettings(Section):
    """docling as a second parser (the extra `docling`). `fallback`: its result is taken where ours found too little
    (`kernels/too_little.py`); `shadow`: ours is kept, and an event says in figures how the two differ."""

    mode: Literal["off", "fallback", "shadow"] = "off"


class ChunkSettings(Section):
    """How text is cut; a token limit bounds the embedded text, prefix and special tokens included (contracts 30)."""

    strategy: str = "structure"
    max_tokens: int = Field(default=256, ge=16, le=1_000_000)
    overlap: int = Field(default=0, ge=0)


class EmbedSettings(Section):
    """`model`: minilm (packaged), a sentence-transformers name or path, or none. `base_url`: an OpenAI-compatible server takes the text.
    `device` auto is CUDA where the stage has GPUs. `partial` lets a run change the model of some sources: search misses the others until
    they are indexed too."""

    model: str = "minilm"
    partial: bool = False
    base_url: str = ""
    api_key_env: str = ""
    device: str = "auto"
    batch_size: int = Field(default=64, ge=1)
    threads: int = Field(default=0, ge=0)


class StageSettings(Section):
    """One stage's actors: how many (0 = as many as the cluster's CPUs allow), CPUs and GPUs of each, rows a batch."""

    workers: int = Field(default=0, ge=0)
    cpus: float = Field(default=1.0, ge=0.0)
    gpus: float = Field(default=0.0, ge=0.0)
    batch_size: int = Field(default=32, ge=1)


class StagesSettings(Section):
    parse: StageSettings = StageSettings(cpus=0.5)
    observe: StageSettings = StageSettings(cpus=0.5)
    caption: StageSettings = StageSettings()
    chunk: StageSettings = StageSettings(cpus=0.25)
    embed: StageSettings = StageSettings(cpus=0.75)


class RunSettings(Section):
    """`epoch_records`: records a commit; a killed run loses at most the epoch in flight. `pdf_range_pages`: pages a fan-out task parses.
    `stream_bytes`: larger files of streamed formats are read segment by segment."""

    epoch_records: int = Field(default=2_000, ge=1)
    pdf_fan_out_pages: int = Field(default=200, ge=2)
    pdf_range_pages: int = Field(default=50, ge=1)
    stream_bytes: int = Field(default=4_000_000, ge=1)
    project: bool = True
    load_vectors: bool = True
    load_graph: bool = True


class RaySettings(Section):
    """`address` empty starts a local cluster; `object_store_bytes` 0 leaves the size to Ray."""

    address: str = ""
    cpus: int = Field(default=0, ge=0)
    object_store_bytes: int = Field(default=0, ge=0)


class SparkSettings(Section):
    """Local Spark for the projection. Whoever has the plain GraphFrames artifact names it in `packages`."""

    packages: tuple[str, ...] = ()
    cores: int = Field(default=0, ge=0)
    memory: str = "2g"


class StoreSettings(Section):
    """`vectors`: URI of a Milvus server, `registry`: SQLAlchemy URL; empty means the embedded file under the lake. Tables and stores
    keep what the newest `keep_generations` complete generations show."""

    vectors: str = ""
    registry: str = ""
    keep_generations: int = Field(default=3, ge=1)


class Settings(BaseSettings):
    """All of it. `raydex index -c FILE` reads it; the run's row keeps it as JSON."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix="RAYDEX_",
        env_nested_delimiter="__",
        yaml_file=None,
        nested_model_default_partial_update=True,
    )

    workspace: str = "default"
    list: ListSettings = ListSettings()
    objects: ObjectSettings = ObjectSettings()
    limits: LimitSettings = LimitSettings()
    ocr: OcrSettings = OcrSettings()
    caption: CaptionSettings = CaptionSettings()
    docling: DoclingSettings = DoclingSettings()
    chunk: ChunkSettings = ChunkSettings()
    embed: EmbedSettings = EmbedSettings()
    stages: StagesSettings = StagesSettings()
    run: RunSettings = RunSettings()
    ray: RaySettings = RaySettings()
    spark: SparkSettings = SparkSettings()
    stores: StoreSettings = StoreSettings()


def load_settings(path: Path | None = None, overrides: dict[str, Any] | None = None) -> Settings:
    """Settings from a YAML file, the environment and overrides. Raises ConfigError naming file, key and the nearest right key."""

    class FileSettings(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            sources: tuple[PydanticBaseSettingsSource, ...] = (init_settings, env_settings)
            return (*sources, YamlConfigSettingsSource(settings_cls, path)) if path else sources

    place = str(path) if path else "configuration"
    if path is not None and not path.is_file():
        what = "is no file" if Path(place).exists() else "does not exist"
        raise ConfigError(f"the configuration file {what}", place=place, remedy="Name an existing YAML file after -c")
    import yaml

    if path is not None:
        _refuse_repeated_keys(path)
    try:
        loaded = FileSettings(**(overrides or {}))
    except yaml.YAMLError as error:
        raise ConfigError(f"the file is not valid YAML: {str(error).splitlines()[0]}", place=place) from error
    except ValidationError as error:
        raise ConfigError(_explain(error), place=place) from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the file must hold keys and values: {error}", place=place) from error
    return Settings.model_construct(**{name: getattr(loaded, name) for name in Settings.model_fields})


def _refuse_repeated_keys(path: Path) -> None:
    """YAML readers keep the last of two equal keys and say nothing. Raises ConfigError naming both lines; what is no YAML passes."""
    import yaml

    try:
        waiting = [yaml.compose(path.read_text(encoding="utf-8"))]
    except (yaml.YAMLError, UnicodeDecodeError):
        return
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue  # an alias: it may stand anywhere, even inside what it names
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                first = lines.setdefault(str(key.value), line)
                if first != line:
                    raise ConfigError(
                        f"key {key.value} is there twice, in lines {first} and {line}", place=str(path), remedy="Keep one of them"
                    )
                waiting.append(value)


def _explain(error: ValidationError) -> str:
    parts: list[str] = []
    for item in error.errors():
        keys = [str(key) for key in item["loc"]]
        where = ".".join(keys)
        if item["type"] == "extra_forbidden":
            nearest = difflib.get_close_matches(where, _all_keys(), n=1, cutoff=0.4)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            parts.append(f"unknown key {where}{hint}")
        else:
            parts.append(f"{where}: {item['msg']}")
    return "; ".join(parts)


def _all_keys(model: type[BaseModel] = Settings, prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys.extend(_all_keys(kind, f"{prefix}{name}."))
    return keys
