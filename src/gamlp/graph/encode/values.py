"""The values of an Arrow column as numbers, words or days, whatever type they came in; a gap is NaN, or None.

The same values give the same bits from text and from typed tables: text is read as numbers where it writes numbers,
numbers are words as text writes them, and a date is days since 1970 in UTC, of whatever unit it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.storage.files import Array

GAPS = pa.array(["", "na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", "#n/a", "#na", "<na>", "nat", "(null)"])
NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?inf(inity)?$"
UNITS = r"^([-+]?)[$€£]?\s*(.*?)\s*[%€]?$"  # a number may stand before or behind these
TRUTHS = {"true": 1, "yes": 1, "y": 1, "t": 1, "false": 0, "no": 0, "n": 0, "f": 0}
ISO = re.compile(r"\d{4}[-/]\d{1,2}([-/]\d{1,2}([T ]\d{1,2}:\d{2}.*)?)?")
FORMS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
EPOCHS = {"seconds": 86_400.0, "milliseconds": 86_400e3, "microseconds": 86_400e6, "nanoseconds": 86_400e9}
DAY = 86_400_000_000  # microseconds


def decoded(column: Any) -> Any:
    """Return a column in one piece, of plain values."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def is_words(kind: Any) -> bool:
    """Say whether a column holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_numeric(kind: Any) -> bool:
    """Say whether a column holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_days(kind: Any) -> bool:
    """Say whether a column holds dates."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_list(kind: Any) -> bool:
    """Say whether a column holds lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def as_words(column: Any) -> Any:
    """Return strings without blanks around them, gaps empty; whole numbers without a point, lists joined by blanks."""
    column = decoded(column)
    if is_list(column.type):
        lists = column.cast(pa.large_list(column.type.value_type)) if not is_large(column.type) else column
        items = as_words(pc.list_flatten(lists))
        flat = pa.LargeListArray.from_arrays(plain_offsets(lists), pc.fill_null(items, ""))
        joined = pc.binary_join(flat.cast(pa.list_(pa.string())), " ")
        return as_words(pc.if_else(lists.is_valid(), joined, pa.scalar(None, joined.type)))
    if pa.types.is_floating(column.type):
        whole = pc.all(pc.equal(pc.floor(column), column), min_count=0).as_py()
        column = pc.cast(column, pa.int64()) if whole else column
    try:
        words = pc.cast(column, pa.string())
    except pa.ArrowException:
        words = pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
    words = pc.utf8_trim_whitespace(words)
    return pc.if_else(pc.is_in(pc.utf8_lower(words), GAPS), pa.scalar(None, pa.string()), words)


def is_large(kind: Any) -> bool:
    """Say whether lists have 64-bit offsets."""
    return bool(pa.types.is_large_list(kind))


def plain_offsets(lists: Any) -> Any:
    """Return the offsets of lists as if they began at 0, an empty one for a gap."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def as_numbers(column: Any) -> Array:
    """Return (n,) float64; NaN for gaps, infinite values, and words that are no number."""
    column = decoded(column)
    if pa.types.is_boolean(column.type) or is_numeric(column.type):
        numbers = pc.cast(column, pa.float64(), safe=False)
    elif pa.types.is_duration(column.type) or pa.types.is_time(column.type):
        unit = 32 if getattr(column.type, "bit_width", 64) == 32 else 64
        per = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
        numbers = pc.divide(pc.cast(pc.cast(column, pa.int32() if unit == 32 else pa.int64()), pa.float64()), per)
    else:
        bare = pc.replace_substring_regex(as_words(column), UNITS, r"\1\2")
        written = pc.match_substring_regex(bare, NUMBER, ignore_case=True)
        numbers = pc.cast(pc.if_else(written, bare, pa.scalar(None, pa.string())), pa.float64())
    values = np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def as_truths(column: Any) -> Array:
    """Return (n,) float64: 1 and 0 of true and false, yes and no, numbers as they are; NaN for anything else."""
    column = decoded(column)
    numbers = as_numbers(column)
    words = each_word(column, lambda word: TRUTHS.get(word.lower())) if is_words(column.type) else numbers
    return np.where(np.isnan(words), numbers, words)


def as_days(column: Any, form: str) -> Array:
    """Return (n,) float64: days since 1970, NaN for gaps and for what is no date of this form."""
    column = decoded(column)
    if is_days(column.type):
        moments = pc.cast(pc.cast(column, pa.timestamp("us"), safe=False), pa.int64())
        return np.array(moments.to_numpy(zero_copy_only=False), dtype=np.float64) / DAY
    if form in EPOCHS:
        return as_numbers(column) / EPOCHS[form]
    return each_word(column, lambda word: day_of(word, form))


def day_of(word: str, form: str) -> float | None:
    """Return the day of a date that text writes, or None."""
    try:
        if form != "iso":
            moment = datetime.strptime(word, form).replace(tzinfo=UTC)
        elif ISO.fullmatch(word):
            day, _, rest = word.replace("/", "-").replace(" ", "T", 1).partition("T")
            year, month, number = (*day.split("-"), "1")[:3]
            clock = rest.replace(" ", "")
            clock = f"0{clock}" if clock[1:2] == ":" else clock
            moment = datetime.fromisoformat(f"{year}-{int(month):02}-{int(number):02}{'T' * bool(clock)}{clock}")
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        else:
            return None
    except ValueError:
        return None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * DAY + since.seconds * 1_000_000 + since.microseconds) / DAY


def each_word(column: Any, read: Callable[[str], float | None]) -> Array:
    """Read every different word once; (n,) float64, NaN for gaps and what cannot be read."""
    found = as_words(column).dictionary_encode()
    values = [read(word) for word in found.dictionary.to_pylist()]
    meanings = np.array([np.nan if value is None else value for value in values] + [np.nan], dtype=np.float64)
    return np.asarray(meanings[pc.fill_null(found.indices, len(values)).to_numpy(zero_copy_only=False)])
