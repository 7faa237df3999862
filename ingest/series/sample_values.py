"""Texts of lines as numbers: series, value and time."""

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.series.known_series import Codes
from crosswind.ingest.series.sample_lines import Columns
from crosswind.ingest.series.sample_tables import Bools, Floats, Samples, Times
from crosswind.ingest.series.series_text import BRACES, EXPECTED, PLAIN

LINE = re.compile(
    rf"[ \t]*+(?:((?:{PLAIN})?[ \t]*+{BRACES})[ \t]*+|({PLAIN})[ \t]++)"
    r"([^#\s]++)(?:[ \t]++([^#\s]++))?[ \t]*+(?:#[ \t]*+\{.*)?"  # time, exemplar
)
NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|[+-]?Inf(?:inity)?|NaN", re.IGNORECASE)
LONGEST_NUMBER = 400  # characters
PLAIN_NUMBER = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
UNDATED = 0
EARLIEST, LATEST = 1e9, 9.2e9  # seconds since 1970: from 2001 to 2261
UNKNOWN = -1
CodeOf = Callable[[str], int]  # of a series' text; raises MalformedError
Skip = Callable[[int, str, str], None]


def samples_of(columns: Columns, code_of: CodeOf, skip: Skip) -> tuple[Samples, NDArray[np.int64]]:
    """Return the samples of these lines and their line numbers; other lines go to `skip`."""
    length = len(columns.numbers)
    codes, times = np.full(length, UNKNOWN, np.int32), np.zeros(length, np.int64)
    values = np.zeros(length)
    plain = np.flatnonzero(columns.is_plain)
    codes[plain] = _codes(columns.series, code_of)
    values[plain], are_values = _numbers(columns.values)
    times[plain], are_times = _nanoseconds(columns.times)
    codes[plain[~(are_values & are_times)]] = UNKNOWN
    for place in np.flatnonzero(codes == UNKNOWN).tolist():  # exemplars, tabs, infinite values, and errors
        line = columns.line(place)
        try:
            codes[place], values[place], times[place] = _read(line, code_of)
        except MalformedError as error:
            skip(int(columns.numbers[place]), line, str(error))
    is_read = codes != UNKNOWN
    samples = Samples(codes, times, values, np.ones(length, np.bool_))
    return samples.of(is_read), columns.numbers[is_read]


def _codes(texts: pa.StringArray, code_of: CodeOf) -> Codes:
    encoded = texts.dictionary_encode()
    of_text = np.array([_code(text, code_of) for text in encoded.dictionary.to_pylist()], np.int32)
    return of_text[encoded.indices.to_numpy()] if len(of_text) else of_text


def _code(text: str, code_of: CodeOf) -> int:
    try:
        return code_of(text)
    except MalformedError:
        return UNKNOWN  # the line is parsed once more, for the reason


def _numbers(texts: pa.StringArray) -> tuple[Floats, Bools]:
    """Return numbers, and a mask of the texts that are some."""
    try:
        return texts.cast(pa.float64()).to_numpy(), np.ones(len(texts), np.bool_)
    except pa.ArrowInvalid:
        are_numbers = pc.match_substring_regex(texts, PLAIN_NUMBER)
        numbers = pc.if_else(are_numbers, texts, "0").cast(pa.float64())
        return numbers.to_numpy(), are_numbers.to_numpy(zero_copy_only=False)


def _nanoseconds(texts: pa.StringArray) -> tuple[Times, Bools]:
    """Return times, UNDATED if there are none, and a mask of the valid texts."""
    if not len(texts) or texts.buffers()[2] is None or pc.max(pc.binary_length(texts)).as_py() == 0:
        return np.full(len(texts), UNDATED, np.int64), np.ones(len(texts), np.bool_)
    is_dated = pc.not_equal(texts, "")
    numbers, are_numbers = _numbers(pc.if_else(is_dated, texts, "0"))
    is_seconds = (numbers >= EARLIEST) & (numbers < LATEST)
    is_milliseconds = (numbers >= EARLIEST * 1000) & (numbers < LATEST * 1000)
    is_dated = is_dated.to_numpy(zero_copy_only=False)
    ns = np.rint(np.where(is_seconds, numbers * 1e6, 0)).astype(np.int64) * 1000
    ns += np.rint(np.where(is_milliseconds, numbers, 0)).astype(np.int64) * 1_000_000
    return ns, are_numbers & (~is_dated | is_seconds | is_milliseconds)


def _read(line: str, code_of: CodeOf) -> tuple[int, float, int]:
    """Read one line that is not plain. Raises: MalformedError."""
    match = LINE.fullmatch(line)
    if match is None:
        raise MalformedError(EXPECTED)
    labelled, name, value, time = match.groups()
    if len(value) > LONGEST_NUMBER or NUMBER.fullmatch(value) is None:
        raise MalformedError(f"value {value[:40]!r} is no number")
    [ns], [is_time] = _nanoseconds(pa.array([time or ""]))
    if not is_time:
        raise MalformedError(f"time {time[:40]!r} is neither seconds nor milliseconds of 2001 to 2261")
    return code_of(labelled or name), float(value), int(ns)
