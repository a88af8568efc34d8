"""Text as features: tf-idf of its words, or of its letters, along the main directions.

With n rows, d of them having token w, c times in this one (as in `readers.debian`):

    tf-idf = c · (ln((1 + n) / (1 + d)) + 1),   rows to length 1,   then the first F singular directions.

Tokens are words, or three and four letters within words where there are few words that stand in several rows: names,
codes, languages without blanks. Words that were never seen say nothing; a gap is a row of zeros.

scikit-learn finds and counts the tokens and gives the singular vectors, from a fixed seed and on one thread: the same
bits on any number of cores. Kept are the tokens and one array (tokens, 1 + F): ln(…) + 1, and the directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.compute as pc
from pydantic import ConfigDict

from gamlp.graph.encode import values as read
from gamlp.graph.encode.kinds import Column, Place
from gamlp.storage.files import Array

DIRECTIONS = 128
TOKENS: dict[str, dict[str, Any]] = {
    "words": {"analyzer": "word", "token_pattern": r"(?u)[^\W_]{2,}"},
    "letters": {"analyzer": "char_wb", "ngram_range": (3, 4)},
}
MOST = {"words": 2**14, "letters": 2**13}  # tokens that are kept, the commonest
FEWEST = 3  # rows that a token stands in; 2 in a table of few
LONGEST = 2**12  # letters of a value that are looked at
LENGTH = 2.0  # of a row of features, in the mean


@dataclass(frozen=True, eq=False)
class Text(Column):
    """Words, or words cut into letters."""

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)
    kind = "text"
    tokens: str
    vocabulary: tuple[str, ...]
    several: int = 0  # values, where they are names rather than sentences
    learned: Array = field(default_factory=lambda: np.empty((0, 1), np.float32), repr=False)  # (tokens, 1 + F)

    @property
    def names(self) -> tuple[str, ...]:
        """One a direction."""
        return tuple(f"{self.name}[{at}]" for at in range(self.learned.shape[1] - 1))

    @property
    def words(self) -> str:
        """What it was taken for."""
        what = f"category of {self.several:,} values" if self.several else "text"
        return f"{what} → {len(self.names)} columns"

    @property
    def array(self) -> Array:
        """What the tokens weigh, and the directions."""
        return self.learned

    def data(self) -> dict[str, Any]:
        """Return it for JSON, but for the array."""
        about = {"name": self.name, "tokens": self.tokens, "vocabulary": list(self.vocabulary), "several": self.several}
        return {"kind": self.kind, **about}

    def encode(self, column: Any, place: Place) -> Array:
        """Return (n, F); every different text is looked at once."""
        found = read.as_words(column).dictionary_encode()
        texts = found.dictionary.to_pylist()
        counts = counter(self.tokens, self.vocabulary).transform([*shortened(texts), ""])
        rows = np.asarray(weighted(counts, self.learned[:, 0]) @ np.ascontiguousarray(self.learned[:, 1:]))
        each = pc.fill_null(found.indices, len(texts)).to_numpy(zero_copy_only=False)
        return np.asarray(rows[each], np.float32)


def fit_text(name: str, texts: Sequence[str | None], *, directions: int = DIRECTIONS, several: int = 0) -> Text | None:
    """Learn tokens, weights and directions from some rows; None where no token stands in several of them."""
    given = shortened(text or "" for text in texts)
    tokens, counted = "words", count_tokens(given, "words")
    if counted is None or said(counted[1]) < 0.5 * np.mean([bool(one) for one in given]):
        tokens, counted = "letters", count_tokens(given, "letters")
    if counted is None:
        return None
    vocabulary, counts = counted
    return Text(name, tokens, vocabulary, several, main_directions(counts, directions))


def said(counts: Any) -> float:
    """Return the share of rows that have a token."""
    return float((counts.getnnz(axis=1) > 0).mean())


def counter(tokens: str, vocabulary: Sequence[str] | None, **limits: Any) -> Any:
    """Return what counts the tokens of texts."""
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(dtype=np.float32, vocabulary=vocabulary, **TOKENS[tokens], **limits)


def count_tokens(texts: Sequence[str], tokens: str) -> tuple[tuple[str, ...], Any] | None:
    """Return the tokens that stand in several of the texts, and how often in each, (n, tokens)."""
    fewest = FEWEST if len(texts) >= 1000 else 2
    try:
        found = counter(tokens, None, min_df=fewest, max_features=MOST[tokens])
        counts = found.fit_transform(texts)
    except ValueError:  # no token is left
        return None
    return tuple(found.get_feature_names_out().tolist()), counts


def weighted(counts: Any, weights: Array) -> Any:
    """Return tf-idf, rows of length 1."""
    from scipy.sparse import csr_array
    from sklearn.preprocessing import normalize

    values = csr_array((counts.data * weights[counts.indices], counts.indices, counts.indptr), shape=counts.shape)
    return normalize(values, copy=False)


def main_directions(counts: Any, directions: int) -> Array:
    """Return ln((1 + n) / (1 + d)) + 1 and the leading singular vectors of each token, (tokens, 1 + F).

    They are scaled so that rows of features have the length LENGTH in the mean.
    """
    from sklearn.utils.extmath import randomized_svd
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    rows, width = counts.shape
    weights = (np.log((1 + rows) / (1 + np.bincount(counts.indices, minlength=width))) + 1).astype(np.float32)
    matrix = weighted(counts, weights)
    vectors = np.eye(width, dtype=np.float32)
    if width > directions:
        with threadpool_limits(1):
            vectors = randomized_svd(matrix, min(directions, rows), n_iter=4, random_state=0)[2].T
    length = np.sqrt((np.asarray(matrix @ vectors) ** 2).sum(axis=1).mean())
    return np.column_stack([weights, vectors * (LENGTH / max(length, 1e-6))]).astype(np.float32)


def shortened(texts: Any) -> list[str]:
    """Return the beginnings of texts."""
    return [text[:LONGEST] for text in texts]
