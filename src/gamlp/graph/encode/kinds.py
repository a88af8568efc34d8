"""What a column can be, and how each kind becomes features; a kind is one class here or in `text`.

    number     x, or (x − median) / spread, softly bounded at ±3, beside columns that are no numbers
    truth      1 and 0 of true and false, yes and no
    category   a column for every value
    date       the day as a number; where in the year and the week, in the day too where there are hours: cos and sin
    vector     lists of numbers, of one length
    nothing    a column that says nothing: empty, the same everywhere, or another code in every row

Where training had gaps, one column more says which values are gaps. A gap is the median, and no category, no day. What
training has not seen is no error: another category is none of the known ones, a word among numbers a gap; but where
training had numbers alone and none of the values is one, the column is another one.

A kind is a frozen dataclass of what JSON can hold, and at most one `array`; it encodes row by row, so that blocks of
any size give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError, ShapeError
from gamlp.graph.encode import values as read
from gamlp.storage.files import Array

BOUND = 3.0  # spreads
Place = Callable[[int], str]  # names a row


@dataclass(frozen=True)
class Column:
    """A column as it was found in training."""

    kind: ClassVar[str]
    plain: ClassVar[bool] = False  # whether it is numbers, which need no other scale
    text_type: ClassVar[str] = "string"  # what text is read as
    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """What its features are called."""
        return (self.name,)

    @property
    def words(self) -> str:
        """What it was taken for."""
        return self.kind

    @property
    def array(self) -> Array | None:
        """What it learned, where that is more than a few numbers."""
        return None

    def encode(self, column: Any, place: Place) -> Array:
        """Return its features, (n, len(names)) float32; `place` names a row of the column in errors."""
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        """Return it for JSON, but for the array."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Gappy(Column):
    """A column that says where its gaps are, if training had any."""

    gaps: bool

    def marked(self, features: Array, missing: Array) -> Array:
        """Return the features with the gaps beside them, if they are marked."""
        columns = [features, missing[:, None]] if self.gaps else [features]
        return np.concatenate(columns, axis=1, dtype=np.float32, casting="same_kind")

    def with_gap(self, *names: str) -> tuple[str, ...]:
        """Return names with that of the gaps."""
        return (*names, f"{self.name} is empty") if self.gaps else names


@dataclass(frozen=True)
class Number(Gappy):
    """Numbers, as they are or `scaled`."""

    kind = "number"
    plain = True
    text_type = "double"
    middle: float
    spread: float
    odd: str = ""  # words among them, which are gaps
    scaled: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """One, and the gaps."""
        return self.with_gap(self.name)

    @property
    def words(self) -> str:
        """What it was taken for."""
        return f"number{f', but {self.odd}' if self.odd else ''}"

    def encode(self, column: Any, place: Place) -> Array:
        """Return (n, 1 or 2)."""
        spread, numbers = self.spread if self.scaled else None, single(read.as_numbers(column))
        self.check(column, numbers, place)
        return self.marked(*centred(numbers[:, None], self.middle, spread))

    def check(self, column: Any, numbers: Array, place: Place) -> None:
        """Refuse rows none of which is a number, where training had nothing but numbers: another column, or damage."""
        if self.gaps or not np.isnan(numbers).all():
            return
        given = read.decoded(column)
        given = (read.as_words(given) if read.is_words(given.type) else given).to_pylist()
        at = next((at for at, value in enumerate(given) if value is not None and str(value) != "nan"), None)
        if at is not None:
            raise FormatError(
                f"Column '{self.name}' held numbers in training, and {place(at)} holds {given[at]!r}.\n"
                "Give numbers that a float32 holds, or leave gaps empty."
            )


@dataclass(frozen=True)
class Truth(Gappy):
    """True and false."""

    kind = "truth"
    plain = True

    @property
    def names(self) -> tuple[str, ...]:
        """One, and the gaps."""
        return self.with_gap(self.name)

    @property
    def words(self) -> str:
        """What it was taken for."""
        return "true or false"

    def encode(self, column: Any, place: Place) -> Array:
        """Return (n, 1 or 2)."""
        return self.marked(*centred(read.as_truths(column)[:, None], 0.0, None))


@dataclass(frozen=True)
class Category(Gappy):
    """Some values, a column each."""

    kind = "category"
    values: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """One a value, and the gaps."""
        return self.with_gap(*(f"{self.name}={value}" for value in self.values))

    @property
    def words(self) -> str:
        """What it was taken for."""
        return f"category of {len(self.values)} values"

    def encode(self, column: Any, place: Place) -> Array:
        """Return (n, values); a row of zeros for one that was never seen."""
        words = read.as_words(column)
        found = pc.fill_null(pc.index_in(words, pa.array(self.values, pa.string())), -1)
        index = found.to_numpy(zero_copy_only=False)
        features = (index[:, None] == np.arange(len(self.values))).astype(np.float32)
        return self.marked(features, words.is_null().to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class Date(Gappy):
    """Days, of the form that text writes them in."""

    kind = "date"
    form: str
    middle: float
    spread: float
    hours: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The day, each cycle twice, and the gaps."""
        cycles = [f"{self.name} {what} {part}" for what, _, _ in self.cycles for part in ("cos", "sin")]
        return self.with_gap(f"{self.name} day", *cycles)

    @property
    def cycles(self) -> list[tuple[str, float, float]]:
        """Name, length in days, and a day on which each begins: a Sunday, the fourth of 1970."""
        clock = [("in the day", 1.0, 0.0)] if self.hours else []
        return [("in the year", 365.2425, 0.0), ("in the week", 7.0, 3.0), *clock]

    def encode(self, column: Any, place: Place) -> Array:
        """Return (n, 5 to 8)."""
        days = read.as_days(column, self.form)
        number, missing = centred(days[:, None], self.middle, self.spread)
        turns = [2 * np.pi * (days - first) / length for _, length, first in self.cycles]
        waves = np.stack([wave(turn) for turn in turns for wave in (np.cos, np.sin)], axis=1)
        return self.marked(np.concatenate([number, np.nan_to_num(waves)], axis=1), missing)


@dataclass(frozen=True)
class Vector(Gappy):
    """Lists of numbers, as they are or `scaled`."""

    kind = "vector"
    plain = True
    middle: tuple[float, ...]
    spread: tuple[float, ...]
    scaled: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """One a place, and the gaps."""
        places = [f"{self.name}[{at}]" for at in range(len(self.middle))]
        return self.with_gap(*([self.name] if len(places) == 1 else places))

    @property
    def words(self) -> str:
        """What it was taken for."""
        return f"{len(self.middle)} numbers"

    def encode(self, column: Any, place: Place) -> Array:
        """Return (n, length); a list of another length is refused by its row."""
        values = single(list_rows(column, self.name, place, length=len(self.middle)))
        spread = np.array(self.spread) if self.scaled else None
        return self.marked(*centred(values, np.array(self.middle), spread))


@dataclass(frozen=True)
class Nothing(Column):
    """A column that is left out, and why."""

    kind = "nothing"
    plain = True
    why: str

    @property
    def names(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def words(self) -> str:
        """Why it was left out."""
        return f"left out: {self.why}"

    def encode(self, column: Any, place: Place) -> Array:
        """Return (n, 0)."""
        return np.empty((len(column), 0), np.float32)


def single(values: Array) -> Array:
    """Round to what float32 holds, so that numbers of any width give the same bits; beyond it is a gap."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
    rounded[np.isinf(rounded)] = np.nan
    return rounded


def centred(values: Array, middle: Any, spread: Any) -> tuple[Array, Array]:
    """Return values (n, width) without gaps, scaled where a spread is given, and which rows had some."""
    missing = np.isnan(values)
    filled = np.where(missing, middle, values)
    if spread is not None:
        scaled = (filled - middle) / spread
        filled = scaled / np.sqrt(1 + (scaled / BOUND) ** 2)
    return filled.astype(np.float32), np.asarray(missing.any(axis=1))


def list_rows(column: Any, name: str, place: Place, *, length: int) -> Array:
    """Return lists as (n, length) float64, NaN where there is none."""
    column = lists_of(column)
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    given = ~np.isnan(lengths.astype(np.float64))
    wrong = given & (lengths != length)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ShapeError(
            f"{place(at)}: column '{name}' has a list of {int(lengths[at])} values, others have {length}.\n"
            "Every node needs as many features as the others."
        )
    rows = np.full((len(column), length), np.nan)
    flat = read.as_numbers(pc.list_flatten(column))
    rows[given] = flat.reshape(int(given.sum()), length)
    return rows


def lists_of(column: Any) -> Any:
    """Return a column as lists; text writes them as [1, 2, 3]."""
    column = read.decoded(column)
    if read.is_list(column.type):
        return column
    words = pc.utf8_trim(read.as_words(column), "[]() ")
    return pc.split_pattern_regex(words, r"\s*[,;]\s*|\s+")
