"""The candidates of rows, as a stage gets them."""
from __future__ import annotations

import itertools
from functools import cached_property

from ._columns import column, metadata_of, numpy, offsets
from ._errors import Invalid

_UNSCORED = float("nan")


class Candidate:
    """An entry of the knowledge that a search proposes for a row."""

    __slots__ = ("_of", "_at")

    def __init__(self, of: "Candidates", at: int):
        self._of, self._at = of, at

    @property
    def id(self) -> str:
        return self._of.ids[self._at]

    @property
    def label(self) -> str:
        return self._of.labels[self._at]

    @property
    def text(self) -> str:
        """Without reads=["candidate_texts"] it is empty, and so are context and meta."""
        return self._of.texts[self._at]

    @property
    def context(self) -> str:
        return self._of.contexts[self._at]

    @property
    def meta(self) -> dict:
        return metadata_of(self._of.metas[self._at])

    @property
    def score(self) -> float:
        """After fusion, or the reranker's; comparable only within one method."""
        return self._of.scores[self._at]

    @property
    def dense(self) -> float:
        """The cosine of the vectors; NaN: the dense search did not score it."""
        return self._of.dense[self._at]

    @property
    def lexical(self) -> float:
        """BM25; NaN: the lexical search did not score it."""
        return self._of.lexical[self._at]

    def __repr__(self) -> str:
        return f"Candidate(id={self.id!r}, label={self.label!r}, score={self.score:g})"


class Candidates:
    """The candidates of all rows of a batch."""

    def __init__(self, name: str, message, n: int):
        self.name, self.message, self.total = name, message, len(message.label)
        self.offsets = offsets(name, message.offsets, n, self.total)

    def of(self, row: int) -> list[Candidate]:
        return [Candidate(self, at) for at in range(self.offsets[row], self.offsets[row + 1])]

    def _column(self, name: str, missing) -> list:
        return column(f"{self.name}.{name}", getattr(self.message, name), self.total, missing)

    @cached_property
    def labels(self) -> list[str]:
        names = list(self.message.names)
        try:
            return [names[at] for at in self.message.label]
        except IndexError:
            raise Invalid(f"column {self.name}: a label that is not among {len(names)} names") from None

    @cached_property
    def ids(self) -> list[str]:
        lengths, text = self._column("id_bytes", 0), self.message.ids
        ends = list(itertools.accumulate(lengths, initial=0))
        if text.isascii():
            return [text[a:b] for a, b in itertools.pairwise(ends)]
        raw = text.encode()
        return [raw[a:b].decode() for a, b in itertools.pairwise(ends)]

    @cached_property
    def texts(self) -> list[str]:
        return self._column("text", "")

    @cached_property
    def contexts(self) -> list[str]:
        return self._column("context", "")

    @cached_property
    def metas(self) -> list[bytes]:
        return self._column("meta", b"")

    @cached_property
    def scores(self) -> list[float]:
        return self._column("score", 0.0)

    @cached_property
    def dense(self) -> list[float]:
        return self._column("dense", _UNSCORED)

    @cached_property
    def lexical(self) -> list[float]:
        return self._column("lexical", _UNSCORED)

    @cached_property
    def arrays(self) -> dict:
        np = numpy()
        return {name: np.array(getattr(self, name), dtype=np.float32) for name in ("scores", "dense", "lexical")}

    def array(self, name: str, row: int):
        return self.arrays[name][self.offsets[row]:self.offsets[row + 1]]
