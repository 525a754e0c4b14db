"""What a stage gets: rows that look into the columns of a message.

Nothing of a column is taken apart before a stage asks for it. Numeric columns are there as arrays of
numpy, too, which is imported when the first of them is asked for.
"""
from __future__ import annotations

import itertools
import typing
from functools import cached_property

from ._candidates import Candidate, Candidates
from ._columns import column, metadata_of, numpy, offsets, vectors_of
from ._errors import Invalid, StageError
from ._prompts import prompts_of
from ._records import Rejection
from ._votes import samples_of


class Row:
    """One item on its way through a pipeline. It has the columns that the stage reads."""

    __slots__ = ("_of", "index")

    def __init__(self, of: "Rows", index: int):
        self._of, self.index = of, index

    @property
    def id(self) -> str:
        return self._of.ids[self.index]

    @property
    def text(self) -> str:
        return self._of.texts[self.index]

    @property
    def meta(self) -> dict:
        """Strings, numbers and booleans by name."""
        return metadata_of(self._of.metas[self.index])

    @property
    def vector(self) -> "memoryview | None":
        """float32 values, which numpy.asarray takes without a copy; None: there are no vectors."""
        return self._of.vector(self.index)

    @property
    def candidates(self) -> list[Candidate]:
        """Best first."""
        return self._of.candidates.of(self.index)

    @property
    def prototypes(self) -> list[Candidate]:
        """Labels with the cosine (dense) to their centroid, nearest first."""
        return self._of.prototypes.of(self.index)

    @property
    def random(self) -> list[Candidate]:
        """Seeded examples of the knowledge, with their texts."""
        return self._of.random.of(self.index)

    @property
    def scores(self):
        """The candidates' scores as an array of numpy."""
        return self._of.candidates.array("scores", self.index)

    @property
    def dense(self):
        """Their dense scores as an array of numpy."""
        return self._of.candidates.array("dense", self.index)

    @property
    def lexical(self):
        """Their lexical scores as an array of numpy."""
        return self._of.candidates.array("lexical", self.index)

    @property
    def labels(self) -> list[str]:
        """All labels of the knowledge, the same for all rows."""
        return self._of.labels

    @property
    def prompts(self) -> list:
        return self._of.prompts[self.index]

    @property
    def samples(self) -> list:
        """Those of the voters above, in the order of the file."""
        return self._of.samples[self.index]

    @property
    def drawn(self) -> int:
        """Samples that this stage has given for the row before."""
        return self._of.drawn[self.index]

    @property
    def rejected(self) -> list[Rejection]:
        """Those of them that were not accepted."""
        return self._of.rejected[self.index]

    def __repr__(self) -> str:
        return f"Row(id={self.id!r})"


class Rows(typing.Sequence[Row]):
    """A batch of rows. Its columns are those that the stage declares to read."""

    def __init__(self, message, reads: typing.Collection[str]):
        self._message, self._reads = message, reads
        self.ids: list[str] = list(message.id)
        if len(self.ids) != message.n:
            raise Invalid(f"column id has {len(self.ids)} values for {message.n} rows")

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, at):
        if isinstance(at, slice):
            return [Row(self, i) for i in range(*at.indices(len(self)))]
        return Row(self, range(len(self))[at])

    def __iter__(self) -> typing.Iterator[Row]:
        return (Row(self, i) for i in range(len(self)))

    def _read(self, *names: str):
        """The message, if the stage reads one of the columns."""
        if not any(name in self._reads for name in names):
            raise StageError(f'the stage does not say that it reads {names[0]}: add it to reads=["{names[0]}"]')
        return self._message

    def _column(self, name: str, missing) -> list:
        return column(name, getattr(self._message, name), len(self), missing)

    @cached_property
    def texts(self) -> list[str]:
        self._read("text")
        return self._column("text", "")

    @cached_property
    def metas(self) -> list[bytes]:
        self._read("meta")
        return self._column("meta", b"")

    @cached_property
    def _vectors(self) -> "memoryview | None":
        return vectors_of(self._read("vector"))

    def vector(self, at: int) -> "memoryview | None":
        dimension = self._message.dimension
        return None if self._vectors is None else self._vectors[at * dimension:(at + 1) * dimension]

    @cached_property
    def vectors(self):
        """The vectors as an array of numpy of n rows, without a copy. Of no vectors its rows have no columns."""
        np = numpy()
        flat = self._vectors
        if flat is None:
            return np.zeros((len(self), 0), np.float32)
        return np.asarray(flat).reshape(len(self), self._message.dimension)

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates("candidates", self._read("candidates", "candidate_texts").candidates, len(self))

    @cached_property
    def prototypes(self) -> Candidates:
        return Candidates("prototypes", self._read("prototypes").prototypes, len(self))

    @cached_property
    def random(self) -> Candidates:
        return Candidates("random", self._read("random").random, len(self))

    @cached_property
    def labels(self) -> list[str]:
        """All labels of the knowledge, sorted."""
        return list(self._read("labels").labels)

    @cached_property
    def prompts(self) -> list[list]:
        return prompts_of(self._read("prompts").prompts, len(self))

    @cached_property
    def samples(self) -> list[list]:
        return samples_of(self._read("samples").samples, len(self))

    @cached_property
    def drawn(self) -> list[int]:
        return self._column("drawn", 0)

    @cached_property
    def rejected(self) -> list[list[Rejection]]:
        message = self._message.rejected
        at = offsets("rejected", message.offsets, len(self), len(message.text))
        reasons = column("rejected.reason", message.reason, len(message.text), "")
        return [[Rejection(message.text[k], reasons[k]) for k in range(a, b)] for a, b in itertools.pairwise(at)]
