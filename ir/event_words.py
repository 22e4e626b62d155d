"""What an event says where whoever met it has no more to tell than its name."""

from __future__ import annotations

EVENT_WORDS = {
    "bidi_controls": "the text holds characters that change the direction of writing: it may read otherwise than it is",
    "broken_image": "an image that the file holds cannot be read",
    "broken_part": "a part of the file cannot be read",
    "broken_values": "what breaks the format is kept as it stands",
    "doctype_ignored": "the document type is not read",
    "duplicate_keys": "a key is there more than once in one mapping: all of its values are kept",
    "encoding_guessed": "the encoding is neither declared nor plain from the bytes: it is a guess",
    "encrypted_body": "a body is encrypted",
    "entity_ignored": "references to entities of the document's own stand as they are written",
    "incomplete_list": "a list of the export is cut off",
    "invalid_utf8": "bytes that are no UTF-8 are replaced by U+FFFD",
    "missing_part": "a part that is named is absent",
    "no_body": "the mail has no body that can be read",
    "no_semantic_blocks": "there is content, but none of it is text, a table or an image",
    "no_text": "nothing was read there",
    "nul_replaced": "NUL characters are replaced by U+FFFD",
    "open_quote": "a quote is never closed; it is read as a character",
    "opened_with_empty_password": "the file is encrypted with an empty password",
    "ragged_rows": "records have another number of cells than the header",
    "tag_ignored": "a tag of the value's type is not applied: the value stands as it is written",
    "too_many_attachments": "not all attachments are taken",
    "truncated_archive": "the archive ends too early",
    "unknown_alias": "an alias names no anchor",
    "unknown_node": "nodes of an unknown type are read as text",
    "wrong_bom": "the byte order mark is not that of the encoding",
    "wrong_declared_encoding": "the text is not in the encoding that it declares",
}
