"""What a stage gets: rows that look into the columns of a message.

Nothing of a column is taken apart before a stage asks for it. Numeric columns are there as arrays of
numpy, too, which is imported when the first of them is asked for.
"""
from __future__ import annotations

import itertools
import json
import typing
from functools import cached_property

from ._errors import Invalid, StageError

_UNSCORED = float("nan")


def numpy():
    """The module numpy. What needs it says so when it is missing."""
    try:
        import numpy
    except ImportError as error:
        raise StageError(f"numpy could not be imported, which arrays of columns need: {error}; install it beside the plugin") from error
    return numpy


def column(name: str, values, n: int, missing) -> list:
    """The values of a column as a list; missing ones are those of a column that is absent."""
    if not values:
        return [missing] * n
    if len(values) != n:
        raise Invalid(f"column {name} has {len(values)} values for {n} rows")
    return list(values)


def offsets(name: str, values, n: int, elements: int) -> list[int]:
    """The offsets of a column of lists."""
    values = list(values)
    if not values and not elements:
        return [0] * (n + 1)
    if len(values) != n + 1 or values[0] != 0 or values[-1] != elements or any(a > b for a, b in itertools.pairwise(values)):
        raise Invalid(f"column {name}: {len(values)} offsets do not divide {elements} elements among {n} rows")
    return values


def metadata(raw: bytes) -> dict:
    return json.loads(raw) if raw else {}


class Candidate:
    """An entry of the knowledge that a search proposes for a row."""

    __slots__ = ("_of", "_at")

    def __init__(self, of: "_Candidates", at: int):
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
        return metadata(self._of.metas[self._at])

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


class _Candidates:
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


class Answer(typing.NamedTuple):
    """A label with its weight within one sample."""

    label: str  # or a text, where the prompt has passages; empty: none of the labels fits
    weight: float = 1.0  # 0 to 1e100
    accepted: bool = False  # set by racflow
    reason: str = ""  # why it is not accepted
    reading: str = ""  # how a text was read that is not the label letter by letter
    explanation: str = ""  # why, in the model's own words


class Rejection(typing.NamedTuple):
    """An answer of this voter that was not accepted."""

    text: str
    reason: str


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
        return metadata(self._of.metas[self.index])

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
    def candidates(self) -> _Candidates:
        return _Candidates("candidates", self._read("candidates", "candidate_texts").candidates, len(self))

    @cached_property
    def prototypes(self) -> _Candidates:
        return _Candidates("prototypes", self._read("prototypes").prototypes, len(self))

    @cached_property
    def random(self) -> _Candidates:
        return _Candidates("random", self._read("random").random, len(self))

    @cached_property
    def labels(self) -> list[str]:
        """All labels of the knowledge, sorted."""
        return list(self._read("labels").labels)

    @cached_property
    def prompts(self) -> list[list]:
        from ._results import prompts_of
        return prompts_of(self._read("prompts").prompts, len(self))

    @cached_property
    def samples(self) -> list[list]:
        from ._results import samples_of
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


def vectors_of(message) -> "memoryview | None":
    """All vectors of rows, one after the other; None: there are none."""
    if not message.vectors:
        return None
    if len(message.vectors) != 4 * message.dimension * message.n:
        raise Invalid(f"column vectors has {len(message.vectors)} bytes for {message.n} rows of dimension {message.dimension}")
    return memoryview(message.vectors).cast("f")


class TrainingRow(typing.NamedTuple):
    """What a stage learns from. text, vector and samples are there where fit_reads names them."""

    id: str
    label: str
    text: str
    vector: "memoryview | None"
    samples: list
    held_out: bool  # it is one of the knowledge, kept out of what the voters saw


def training_rows(message) -> typing.Iterator[TrainingRow]:
    from ._results import samples_of
    n, vectors = message.n, vectors_of(message)
    texts, samples = column("text", message.text, n, ""), samples_of(message.samples, n)
    labels, held = column("label", message.label, n, ""), column("held_out", message.held_out, n, False)
    for i, id in enumerate(message.id):
        vector = None if vectors is None else vectors[i * message.dimension:(i + 1) * message.dimension]
        yield TrainingRow(id, labels[i], texts[i], vector, samples[i], held[i])


class Document(typing.NamedTuple):
    """A text as a source has it."""

    id: str
    text: str
    meta: dict


class Passage(typing.NamedTuple):
    """A chunk with its document, which is the same object for all of its passages. Positions count characters."""

    document: Document
    start: int
    end: int
    header: tuple[int, int] | None  # a part of the document before start that the passage repeats
    meta: dict

    @property
    def text(self) -> str:
        """Its text, with its header."""
        before = self.document.text[self.header[0]:self.header[1]] if self.header else ""
        return before + self.document.text[self.start:self.end]


def documents_of(message) -> list[Document]:
    n = message.n
    if len(message.id) != n:
        raise Invalid(f"column id has {len(message.id)} values for {n} rows")
    texts, metas = column("text", message.text, n, ""), column("meta", message.meta, n, b"")
    return [Document(id, text, metadata(meta)) for id, text, meta in zip(message.id, texts, metas)]


def passages_of(message) -> list[Passage]:
    documents, chunks = documents_of(message), message.chunks
    total = len(chunks.start)
    at = offsets("chunks", chunks.offsets, len(documents), total)
    starts, ends, metas = column("chunks.start", chunks.start, total, 0), column("chunks.end", chunks.end, total, 0), column("chunks.meta", chunks.meta, total, b"")
    heads, tails = column("chunks.header_start", chunks.header_start, total, 0), column("chunks.header_end", chunks.header_end, total, 0)
    passages = []
    for document, (a, b) in zip(documents, itertools.pairwise(at)):
        place = characters(document.text, [*starts[a:b], *ends[a:b], *heads[a:b], *tails[a:b]])
        for k in range(a, b):
            header = (place[heads[k]], place[tails[k]]) if tails[k] else None
            passages.append(Passage(document, place[starts[k]], place[ends[k]], header, metadata(metas[k])))
    return passages


def characters(text: str, places: list[int]) -> dict[int, int]:
    """Numbers of bytes of a text as numbers of its characters."""
    if text.isascii():
        return {place: place for place in places}
    raw, found, before, count = text.encode(), {}, 0, 0
    for place in sorted(set(places)):
        try:
            count += len(raw[before:place].decode())
        except UnicodeDecodeError:
            raise Invalid(f"byte {place} of a text cuts a character in two") from None
        found[place], before = count, place
    return found


def utf8(text: str, places: list[int]) -> dict[int, int]:
    """Numbers of characters of a text as numbers of its bytes."""
    if text.isascii():
        return {place: place for place in places}
    found, before, count = {}, 0, 0
    for place in sorted(set(places)):
        count += len(text[before:place].encode())
        found[place], before = count, place
    return found
