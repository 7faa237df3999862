"""Columns of texts as one JSON object a row, written all at once."""

import json
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc


def json_objects(columns: Iterable[tuple[str, pa.Array]], rows: int) -> pa.Array:
    """The objects as `json.dumps` writes them, without what is empty; null for those without anything.

    The texts hold no control characters.
    """
    parts, literal = [], ""
    for name, texts in columns:
        before = f", {json.dumps(name, ensure_ascii=False)}: " + '"'
        is_empty = pc.equal(pc.binary_length(texts), 0)
        if pc.all(is_empty).as_py():
            continue
        if pc.any(is_empty).as_py():
            some = pc.binary_join_element_wise(before, _escaped(texts), '"', "")
            parts += [literal, pc.if_else(is_empty, "", some)]
            literal = ""
        else:
            parts += [literal + before, _escaped(texts)]
            literal = '"'
    if not parts:
        return pa.nulls(rows, pa.string())
    joined = pc.binary_join_element_wise(*(part for part in parts if not _is_nothing(part)), literal + "}", "")
    objects = pc.binary_replace_slice(joined, start=0, stop=2, replacement="{")
    return pc.if_else(pc.equal(pc.binary_length(joined), 1), pa.scalar(None, pa.string()), objects)


def _is_nothing(part: str | pa.Array) -> bool:
    return isinstance(part, str) and not part


def _escaped(texts: pa.Array) -> pa.Array:
    for character, escaped in (("\\", "\\\\"), ('"', '\\"')):
        if pc.any(pc.match_substring(texts, character)).as_py():
            texts = pc.replace_substring(texts, character, escaped)
    return texts
