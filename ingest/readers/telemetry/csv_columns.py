"""Comma-separated numbers as Arrow columns, many lines at once; cells that do not fit are kept as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from crosswind.data.lake.lake import ARROW_TYPES
from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.lines import Block
from crosswind.ingest.reader.reader import Report

EXACT = 2.0**53  # larger whole numbers are not all exact in float64
MISSING = ["", "nan", "-nan", "NaN"]
WHOLE = r"^[+-]?[0-9]{1,18}$"  # so many digits always fit into 64 bits
LONG = r"^[+-]?[0-9]{19,20}$"
DECIMAL = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
RANGES = {"int64": (-(2**63), 2**63), "uint64": (0, 2**64)}


@dataclass(frozen=True)
class Rows:
    """Lines of a block as columns, in the order of the file."""

    block: Block
    length: int
    columns: Sequence[pa.Array]
    odd: Mapping[int, pa.Array]  # of some columns: the cells that are not of its type, as in the file
    skipped: frozenset[int]  # places, from 1, of the lines of another length than the header

    def lines(self) -> list[tuple[int, str]]:
        """Return number and text of each row's line."""
        return [line for place, line in enumerate(numbered(self.block), 1) if place not in self.skipped]


def numbered(block: Block) -> list[tuple[int, str]]:
    """Return the lines that Arrow takes for rows: all that are not empty, also those of blanks alone."""
    lines = enumerate(block.data.decode().split("\n"), block.number)
    return [(number, line) for number, line in lines if line]


@dataclass
class CsvColumns:
    """Reads blocks of lines that have a column of each of these types: int64, uint64, float64 or string.

    A cell that is no such number is null in its column, and is among the odd ones; so is a whole number that is not
    exact in float64, which is rounded.
    """

    report: Report
    types: Sequence[str]
    _with_odd: set[int] = field(default_factory=set)  # columns to read as text first, as they needed it once

    def rows(self, block: Block) -> Rows:
        """Return the block's lines; those with too few or too many fields go to the report. Raises: MalformedError."""
        return self._rows(self._with_paired_quotes(block))

    def _rows(self, block: Block) -> Rows:
        parsed = _Parsed(block, len(self.types))
        types = ["string" if place in self._with_odd else dtype for place, dtype in enumerate(self.types)]
        try:
            arrays = parsed.columns(types)
            unfit = _rounded(types, arrays)
        except pa.ArrowInvalid:
            arrays, unfit = [], self._unfit(block)
        if not unfit:
            return self._made(block, parsed, arrays)
        self._with_odd |= unfit  # which grows with every turn
        return self._rows(block)

    def _unfit(self, block: Block) -> set[int]:
        """Return the columns with other cells than numbers; all of them, if that is unclear."""
        try:
            texts = _Parsed(block, len(self.types)).columns(["string"] * len(self.types))
        except pa.ArrowInvalid as error:
            raise MalformedError(f"line {block.number} and those behind it: {error}") from error
        numbers = {place for place, dtype in enumerate(self.types) if dtype != "string"} - self._with_odd
        return {place for place in numbers if not _is_all(texts[place], self.types[place])} or numbers

    def _made(self, block: Block, parsed: "_Parsed", arrays: list[pa.Array]) -> Rows:
        lines = numbered(block) if parsed.bad else []
        for place, length in parsed.bad.items():
            self.report.skip(*lines[place - 1], f"{length} fields; expected {len(self.types)}")
        odd = {}
        for place in self._with_odd:
            texts = pc.utf8_trim_whitespace(arrays[place])
            arrays[place], odd[place] = _numbers(texts, self.types[place])
        return Rows(block, len(arrays[0]), arrays, odd, frozenset(parsed.bad))

    def _with_paired_quotes(self, block: Block) -> Block:
        """Return the block without lines in which a quotation does not end: it would swallow the next ones."""
        data = block.data.replace(b"\r\n", b"\n").replace(b"\r", b" ") if b"\r" in block.data else block.data
        if b'"' in data:
            lines = data.split(b"\n")
            for place, line in enumerate(lines):
                if line.count(b'"') % 2:
                    text = line.decode()
                    self.report.skip(block.number + place, text, "a quotation does not end in its line")
                    lines[place] = b""
            data = b"\n".join(lines)
        return Block(block.number, data)


class _Parsed:
    """One reading of a block; lines of another length are remembered."""

    def __init__(self, block: Block, width: int) -> None:
        self.bad: dict[int, int] = {}  # number of fields by the place of the line, from 1
        self._data = block.data
        self._names = [str(place) for place in range(width)]

    def columns(self, types: Sequence[str]) -> list[pa.Array]:
        """Return a column of each type. Raises: pa.ArrowInvalid if a cell is not of its column's."""
        if not self._data or self._data.isspace():
            return [pa.array([], ARROW_TYPES[dtype]) for dtype in types]
        table = csv.read_csv(
            pa.BufferReader(self._data),
            csv.ReadOptions(column_names=self._names, use_threads=False, block_size=len(self._data) + 1),
            csv.ParseOptions(invalid_row_handler=self._remember),
            csv.ConvertOptions(
                column_types={name: ARROW_TYPES[dtype] for name, dtype in zip(self._names, types, strict=True)},
                null_values=MISSING,
                strings_can_be_null=False,
            ),
        )
        return [column.combine_chunks() for column in table.columns]

    def _remember(self, row: csv.InvalidRow) -> str:
        self.bad[row.number] = row.actual_columns
        return "skip"


def _is_all(texts: pa.Array, wanted: str) -> bool:
    texts = pc.utf8_trim_whitespace(texts)
    try:
        pc.if_else(_is_missing(texts), None, texts).cast(ARROW_TYPES[wanted])
    except pa.ArrowInvalid:
        return False
    return True


def _rounded(types: Sequence[str], arrays: Sequence[pa.Array]) -> set[int]:
    """Return the columns in which some number may differ from the file's, as it is not exact in float64."""
    return {place for place, dtype in enumerate(types) if dtype == "float64" and not _is_exact(arrays[place])}


def _is_exact(values: pa.Array) -> bool:
    least, most = pc.min_max(values).as_py().values()
    return least is None or (least > -EXACT and most < EXACT)


def _is_missing(texts: pa.Array) -> pa.Array:
    return pc.is_in(texts, pa.array(MISSING))


def _numbers(texts: pa.Array, wanted: str) -> tuple[pa.Array, pa.Array]:
    """Return the numbers among the texts, and the texts that are none or were rounded; elsewhere both are null."""
    fits = pc.match_substring_regex(texts, DECIMAL if wanted == "float64" else WHOLE)
    if wanted != "float64":
        fits = pc.or_(fits, _fits_64_bits(texts, wanted))
    if wanted == "uint64":
        fits = pc.and_not(fits, pc.starts_with(texts, "-"))
    plain = pc.if_else(pc.starts_with(texts, "+"), pc.utf8_slice_codeunits(texts, 1), texts)
    values = pc.if_else(fits, plain, None).cast(ARROW_TYPES[wanted])
    if wanted == "float64":
        values = pc.if_else(pc.is_finite(values), values, None)
        fits = pc.and_(pc.is_valid(values), pc.fill_null(pc.less(pc.abs(values), EXACT), False))
    return values, pc.if_else(pc.or_(fits, _is_missing(texts)), None, texts)


def _fits_64_bits(texts: pa.Array, wanted: str) -> pa.Array:
    """Return a mask of the longest whole numbers that fit; there are hardly any."""
    least, end = RANGES[wanted]
    fits = np.zeros(len(texts), np.bool_)
    for place in np.flatnonzero(pc.match_substring_regex(texts, LONG).to_numpy(zero_copy_only=False)):
        fits[place] = least <= int(texts[int(place)].as_py()) < end
    return pa.array(fits)
