"""Columns of texts as a JSON object for every row, written all at once."""

import json
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc


def json_objects(columns: Iterable[tuple[str, pa.Array]], rows: int, *, are_plain: bool) -> pa.Array:
    """Return the objects as `json.dumps` writes them, without empty texts; null for empty objects.

    The texts have no control characters, and no quotation mark or backslash when they `are_plain`.
    """
    parts: list[str | pa.Array] = []  # constant texts and columns in turn
    literal = ""
    for name, raw_texts in columns:
        texts = raw_texts if are_plain else _escaped(raw_texts)
        before = f", {json.dumps(name, ensure_ascii=False)}: " + '"'
        is_empty = pc.equal(pc.binary_length(texts), 0)
        empty = pc.sum(is_empty).as_py() or 0
        if empty == rows:
            continue
        if not parts and not empty:
            before = "{" + before[2:]
        if empty:
            some = pc.binary_join_element_wise(before, texts, '"', "")
            parts += [literal, pc.if_else(is_empty, "", some)]
            literal = ""
        else:
            parts += [literal + before, texts]
            literal = '"'
    if not parts:
        return pa.nulls(rows, pa.string())
    joined = pc.binary_join_element_wise(*(part for part in parts if not _is_nothing(part)), literal + "}", "")
    if isinstance(parts[0], str) and parts[0]:  # a text that is never empty comes first
        return joined
    objects = pc.binary_replace_slice(joined, start=0, stop=2, replacement="{")
    return pc.if_else(pc.equal(pc.binary_length(joined), 1), pa.scalar(None, pa.string()), objects)


def _is_nothing(part: str | pa.Array) -> bool:
    return isinstance(part, str) and not part


def _escaped(texts: pa.Array) -> pa.Array:
    for character, escaped in (("\\", "\\\\"), ('"', '\\"')):
        texts = pc.replace_substring(texts, character, escaped)
    return texts
