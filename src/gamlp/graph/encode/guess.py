"""What a column is, from some of its rows; `kinds` says what becomes of it.

Types decide where there are any. Strings, which is all that text files have, are what nearly all of them can be read
as: numbers, true and false, dates, lists of numbers; else a category where there are few values, else text. What
differs in every row and is made of digits is an id, and says nothing. The thresholds follow skrub's TableVectorizer (a
column for each of up to 40 values, about 30 directions for more), and scikit-learn's encoders do the work.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamlp.errors import FormatError
from gamlp.graph.encode import values as read
from gamlp.graph.encode.kinds import (
    Category,
    Column,
    Date,
    Nothing,
    Number,
    Place,
    Truth,
    Vector,
    list_rows,
    lists_of,
    single,
)
from gamlp.graph.encode.text import fit_text
from gamlp.storage.files import Array

MOST = 40  # values of a category with a column each
NAMES = 32  # columns of a category with more
MOSTLY = 0.9  # of the values must be numbers, dates …
SENTENCE = 3  # words, in the mean
THOUSANDS = r"^[-+]?[$€£]?\s*(\d{1,3}([,' ]\d{3})+(\.\d+)?|\d{1,3}(\.\d{3})+,\d+)\s*[%€]?$"
LIST = r"^[\[(]\s*[-+.\d].*[\])]$"
UNNAMED = ("", "Unnamed: 0", "index")
CODE = re.compile(r"[0-9a-fA-F]|[\W_]")
MOMENT = re.compile(r"(date|time|epoch|created|updated|modified|joined|since|until)|(^|_)(day|ts|at|on)(_|$)", re.I)
FIRST, LAST = 3e8 / 86_400, 4.2e9 / 86_400  # days since 1970 that a number may mean: from 1979 to 2103


def guess(name: str, column: Any, place: Place, *, gaps: bool = False) -> Column:
    """Return the column with all that is learned of it; with `gaps` there are some that are not among these rows.

    What cannot be a feature is a FormatError or ShapeError.
    """
    categories, column = pa.types.is_dictionary(column.type), read.decoded(column)
    kind, gaps = column.type, gaps or bool(column.null_count)
    inner = kind.value_type if read.is_list(kind) else None
    if column.null_count == len(column):
        found: Column = Nothing(name, "empty")
    elif pa.types.is_boolean(kind):
        found = Truth(name, gaps)
    elif read.is_days(kind):
        found = date(name, read.as_days(column, "iso"), "iso", gaps=gaps)
    elif inner is not None and read.is_numeric(inner):
        found = vector(name, column, place, gaps=gaps)
    elif categories or (inner is not None and read.is_words(inner)):
        found = text(name, read.as_words(column), gaps=gaps)
    elif read.is_words(kind):
        found = words(name, read.as_words(column), place, gaps=gaps)
    elif pa.types.is_nested(kind) or "binary" in str(kind):
        raise FormatError(f"column '{name}' holds {kind}, which is no feature")
    else:
        found = number(name, read.as_numbers(column), gaps=gaps)
    return found


def words(name: str, found: Any, place: Place, *, gaps: bool) -> Column:
    """Return what strings are."""
    given, gaps = found.drop_null(), gaps or bool(found.null_count)
    if len(given) and np.isin(read.as_truths(given), (0, 1)).all():
        return Truth(name, gaps)
    numbers, enough = read.as_numbers(found), MOSTLY * max(1, len(given))
    written = refuse_thousands(name, found, place, numbers, enough)
    if written >= enough:
        return number(name, numbers, gaps=gaps, odd=odd_words(given))
    form = date_form(name, given) if len(given) else None
    if form is not None:
        return date(name, read.as_days(found, form), form, gaps=gaps)
    if (pc.sum(pc.match_substring_regex(given, LIST)).as_py() or 0) >= enough:
        return vector(name, found, place, gaps=gaps)
    return text(name, found, gaps=gaps)


def refuse_thousands(name: str, found: Any, place: Place, numbers: Array, enough: float) -> int:
    """Return how many words are numbers; refuse them where some have signs between thousands."""
    apart = pc.fill_null(pc.match_substring_regex(found, THOUSANDS), False).to_numpy(zero_copy_only=False)
    written = int(np.isfinite(numbers).sum())
    if apart.any() and written + apart.sum() >= enough:
        at = int(np.argmax(apart))
        word = found[at].as_py()
        comma = re.search(r"\.\d{3},", word) is not None  # the decimal point
        bare = re.sub(r"[^-+.\d]", "", word.replace(".", "").replace(",", ".") if comma else word)
        raise FormatError(f"column '{name}' has signs between thousands: {word!r} in {place(at)}; write {bare}")
    return written


def number(name: str, numbers: Array, *, gaps: bool, odd: str = "") -> Column:
    """Return numbers, or the moments that they count since 1970 where the name says so."""
    rounded = single(numbers)
    if np.isnan(rounded).all():
        return Nothing(name, "empty")
    whole, missing = numbers[~np.isnan(rounded)], gaps or bool(np.isnan(rounded).any())
    form = moment_form(name, whole)
    if form is not None:
        return date(name, read.as_days(pa.array(numbers), form), form, gaps=missing)
    if name in UNNAMED and len(whole) == len(numbers) > 1 and (np.diff(whole) > 0).all():
        return Nothing(name, "numbers of the rows")
    if np.isin(whole, (0, 1)).all() and 0 < whole.mean() < 1:
        return Truth(name, missing)
    middle, spread = spread_of(rounded[:, None])
    return Number(name, missing, float(middle[0]), float(spread[0]), odd)


def moment_form(name: str, numbers: Array) -> str | None:
    """Return what whole numbers count since 1970, or that they are 20241231, where the name speaks of a moment."""
    if not MOMENT.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)) or (numbers != np.floor(numbers)).any():
        return None
    if numbers.min() > 19_000_000 and numbers.max() < 22_000_000:
        return "%Y%m%d" if np.isfinite(read.as_days(pa.array(numbers), "%Y%m%d")).mean() >= MOSTLY else None
    fitting = (
        form for form, unit in read.EPOCHS.items() if FIRST < numbers.min() / unit <= numbers.max() / unit < LAST
    )
    return next(fitting, None)


def odd_words(given: Any) -> str:
    """Say which strings are no numbers."""
    odd = given.filter(pa.array(np.isnan(read.as_numbers(given))))
    return "" if not len(odd) else f"{len(odd):,} words are gaps, as {odd[0].as_py()[:30]!r}"


def date_form(name: str, given: Any) -> str | None:
    """Return how dates are written, None where they are none; a month that may be a day is refused."""
    several = given.unique()
    some = several.take(pa.array(np.unique(np.linspace(0, len(several) - 1, 1000).astype(np.int64))))
    shares = {form: np.isfinite(read.as_days(some, form)).mean() for form in ("iso", *read.FORMS)}
    best = max(shares.values())
    fitting = [form for form, share in shares.items() if share == best >= MOSTLY]
    if any(form[:2] == "%m" for form in fitting) and any(form[:2] == "%d" for form in fitting):
        raise FormatError(f"column '{name}' has dates as {some[0].as_py()!r}: which is the month? Write 2024-12-31")
    return next(iter(fitting), None)


def date(name: str, days: Array, form: str, *, gaps: bool) -> Column:
    """Return dates."""
    known = days[np.isfinite(days)]
    if not len(known):
        return Nothing(name, "empty")
    middle, spread = spread_of(known[:, None])
    hours = bool((known != np.floor(known)).any())
    return Date(name, gaps or len(known) < len(days), form, float(middle[0]), float(spread[0]) or 1.0, hours)


def vector(name: str, column: Any, place: Place, *, gaps: bool) -> Column:
    """Return lists of numbers of one length."""
    lists = lists_of(column)
    first = next((length for length in pc.list_value_length(lists).to_pylist() if length is not None), 0)
    if not first:
        return Nothing(name, "empty")
    rows = single(list_rows(lists, name, place, length=first))
    middle, spread = spread_of(rows)
    return Vector(name, gaps or bool(np.isnan(rows).any()), tuple(middle.tolist()), tuple(spread.tolist()))


def text(name: str, found: Any, *, gaps: bool) -> Column:
    """Return a category of few values, or of many, or text."""
    given = found.drop_null()
    values = given.unique()
    several = len(values)
    if not several or (several == 1 and not gaps and not found.null_count):
        return Nothing(name, "the same in every row" if several else "empty")
    length = pc.mean(pc.add(pc.count_substring(given, " "), 1)).as_py()
    sentences = length >= SENTENCE and several > len(given) / 2
    if several <= MOST and not sentences:
        return Category(name, gaps or bool(found.null_count), tuple(sorted(values.to_pylist())))
    if several == len(given) and all(is_code(word) for word in given.to_pylist()):
        return Nothing(name, "another code in every row")
    sizes: dict[str, int] = {} if sentences else {"directions": NAMES, "several": several}
    return fit_text(name, found.to_pylist(), **sizes) or Nothing(name, "no word stands in several rows")


def is_code(word: str) -> bool:
    """Say whether a word is made of digits: an id, a checksum, user-00123."""
    return any(letter.isdigit() for letter in word) and " " not in word and len(CODE.sub("", word)) <= 4


def spread_of(values: Array) -> tuple[Array, Array]:
    """Return the median of each column, and its spread: that of the middle half, else of all; 0 of a constant."""
    known = np.where(np.isnan(values).all(axis=0), 0.0, values)
    quantile = np.nanquantile if np.isnan(known).any() else np.quantile  # the same, column by column or all at once
    low, middle, high = quantile(known, (0.25, 0.5, 0.75), axis=0)
    spread = (high - low) / 1.349  # that of a normal distribution is then 1
    whole = np.nanstd(known, axis=0)
    return middle, np.where(spread > 0, spread, whole)
