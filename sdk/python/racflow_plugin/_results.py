"""What a stage returns, and how it becomes the columns of a reply.

In the place of a row's result there may be an exception: that row then fails alone.
"""
from __future__ import annotations

import array
import dataclasses
import itertools
import json
import math
import sys
import typing

from . import _wire
from ._errors import StageError, failure, valid
from ._rows import Answer, column, numpy, offsets, utf8

_ABOVE = (1 << 32) - 1


@dataclasses.dataclass
class Sample:
    """One ballot of a voter: a language model's single answer, or a distribution over labels."""

    answers: "list[Answer]" = dataclasses.field(default_factory=list)  # best first
    voter: str = ""  # the block's name; filled in by racflow
    input_tokens: int = 0  # with those that the server had cached
    output_tokens: int = 0
    cached_tokens: int = 0
    text: str = ""  # what a model wrote; it is handed back in Row.rejected
    model: str = ""  # which one gave it, of a voter that has several
    key: bytes = b""  # of the service's reply in the response cache


@dataclasses.dataclass
class Ranked:
    """A candidate in the order of a reranker. The order counts; the score is for people and rules."""

    candidate: int  # position among the row's candidates
    score: float  # -1e30 to 1e30


@dataclasses.dataclass
class Message:
    """One turn of a chat, of the role system, user or assistant."""

    role: str
    text: str
    shared: bool = False  # many prompts begin with the same messages up to this one: it is worth caching


@dataclasses.dataclass
class Prompt:
    """What a language model is asked: a text to complete, or a chat, which ends with the user."""

    text: str = ""
    messages: "list[Message]" = dataclasses.field(default_factory=list)
    labels: "list[str]" = dataclasses.field(default_factory=list)  # the answers that are allowed; none: any
    none: str = ""  # the answer that says that no label fits
    fields: "list[str]" = dataclasses.field(default_factory=list)  # of the JSON object that the answer is to be, "label" or "labels" among them
    passages: "list[str] | None" = None  # ids of candidates that the answer, a text, cites by number from 1


@dataclasses.dataclass
class Verdict:
    """What an election decides for one row."""

    answer: str = ""  # empty: none
    agreement: float = 0.0  # 0 to 1: the share of the votes that it got
    reason: str = ""  # why there is no answer
    confidence: float = 0.0  # 0 to 1: the probability that it is right; 0: not estimated


@dataclasses.dataclass
class Chunk:
    """A part of a document: the characters from start up to end of its text."""

    start: int
    end: int
    header: "tuple[int, int] | None" = None  # a part before start that the chunk repeats: the header rows of a table that was cut
    meta: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Addition:
    """What an enricher adds to a passage: one line that places it, and what people may search for."""

    context: str = ""
    terms: "list[str]" = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Draw:
    """Which random examples a stage that reads "random" wants with each row: the value of its attribute draw."""

    count: int  # for each row
    parts: int = 0  # of the same size, one after the other, such as one for each prompt; 0: one
    shared: bool = False  # the same ones for all rows
    seed: int = 0


@dataclasses.dataclass
class Pending:
    """What embed, sample and enrich return when a service works on the rows, for minutes or hours.

    racflow then asks for the results with the stage's method collect, perhaps in another process and
    for a part of the rows.
    """

    handle: str  # names the work; without a secret, at most 64 KiB
    poll_after: float = 0.0  # the least time to wait, in seconds
    note: str = ""  # how far the work is


def each(function: typing.Callable, rows: typing.Iterable, context=None) -> list:
    """Calls function with each row. A row for which it raises an exception fails alone.

    With the call's context, the work ends where nobody waits for it.
    """
    results = []
    for row in rows:
        if context is not None:
            context.check()
        try:
            results.append(function(row))
        except Exception as error:
            results.append(error)
    return results


def normalize(vectors):
    """The vectors with norm 1; those that are all zero stay. An array of numpy gives one, lists give lists."""
    if _is_array(vectors):
        np = numpy()
        vectors = np.asarray(vectors, np.float32)
        norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return vectors / np.where(norms > 0, norms, 1)
    out = []
    for vector in vectors:
        norm = math.sqrt(math.fsum(x * x for x in vector))
        out.append([x / norm for x in vector] if norm > 0 else list(vector))
    return out


def _is_array(value) -> bool:
    return "numpy" in sys.modules and hasattr(value, "__array__")


class Failed(dict):
    """The rows that failed alone, by their numbers."""

    def take(self, results: list) -> list:
        """The results, with None in the place of exceptions."""
        for i, result in enumerate(results):
            if isinstance(result, Exception):
                self[i] = result
        return [None if i in self else result for i, result in enumerate(results)] if self else results

    def encode(self) -> list:
        return [_wire.RowError(row=i, failure=failure(self[i])) for i in sorted(self)]


def listed(results, n: int) -> list:
    """The results as a list of n."""
    if results is None or isinstance(results, (str, bytes, dict)):
        raise StageError(f"the stage returned {type(results).__name__} in the place of a list of results")
    results = list(results)
    if len(results) != n:
        raise StageError(f"the stage returned {len(results)} results for {n} rows")
    return results


class _Names:
    """Numbers the distinct strings of a column."""

    def __init__(self):
        self.numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        at = self.numbers.get(name)
        if at is None:
            at = self.numbers[name] = len(self.numbers)
        return at

    def all(self) -> list[str]:
        return [valid(name) for name in self.numbers]


def metadata(value: dict) -> bytes:
    """Metadata as it travels: strings, finite numbers and booleans by name."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace") if value else b""


def some(values: list) -> list:
    """A column, or nothing where all values are empty or zero."""
    return values if any(values) else []


# ---- Samples


def _samples(result) -> list:
    """The samples of a row: a label, a dict of weights by label, a Sample, None, or a list of those."""
    if result is None:
        return []
    return [_sample(one) for one in result] if isinstance(result, (list, tuple)) and not isinstance(result, Answer) else [_sample(result)]


def _sample(one) -> Sample:
    if isinstance(one, Sample):
        return one
    if isinstance(one, str):
        return Sample([Answer(one)])
    if isinstance(one, Answer):
        return Sample([one])
    if isinstance(one, dict):
        return Sample(sorted((Answer(label, float(weight)) for label, weight in one.items()), key=lambda answer: -answer.weight))
    raise StageError(f"a voter returned {type(one).__name__} for a row; return a label, a dict of weights by label, a Sample, None, or a list of those")


def _per_row(results: list, failed: Failed, convert: typing.Callable, missing) -> list:
    """The converted results; a row that cannot be converted fails alone."""
    out = []
    for i, result in enumerate(failed.take(results)):
        try:
            out.append(missing() if i in failed else convert(result))
        except Exception as error:
            failed[i] = error
            out.append(missing())
    return out


def samples(results: list, failed: Failed, rows, reply) -> None:
    lists, names = _per_row(results, failed, _samples, list), _Names()
    reply.n, out = len(lists), reply.samples
    out.offsets.extend(itertools.accumulate(map(len, lists), initial=0))
    all_samples = [sample for one in lists for sample in one]
    answers = [answer if isinstance(answer, Answer) else Answer(answer) for sample in all_samples for answer in sample.answers]
    out.answer_offsets.extend(itertools.accumulate((len(sample.answers) for sample in all_samples), initial=0))
    out.answer.extend([names.number(answer.label) for answer in answers])
    out.names.extend(names.all())
    out.weight.extend([answer.weight for answer in answers])
    out.reason.extend(some([valid(answer.reason) for answer in answers]))
    out.reading.extend(some([valid(answer.reading) for answer in answers]))
    out.explanation.extend(some([valid(answer.explanation) for answer in answers]))
    out.voter.extend(some([valid(sample.voter) for sample in all_samples]))
    for name in ("input_tokens", "output_tokens", "cached_tokens"):
        getattr(out, name).extend(some([getattr(sample, name) for sample in all_samples]))
    for name in ("text", "model"):
        getattr(out, name).extend(some([valid(getattr(sample, name)) for sample in all_samples]))
    out.key.extend(some([sample.key for sample in all_samples]))


def samples_of(message, n: int) -> list[list[Sample]]:
    total, answers = max(len(message.answer_offsets) - 1, 0), len(message.answer)
    rows, each_sample = offsets("samples", message.offsets, n, total), offsets("samples.answers", message.answer_offsets, total, answers)
    names, weights = list(message.names), list(message.weight)
    accepted, reasons = column("samples.accepted", message.accepted, answers, False), column("samples.reason", message.reason, answers, "")
    readings, why = column("samples.reading", message.reading, answers, ""), column("samples.explanation", message.explanation, answers, "")
    ballots = [Answer(names[at], weights[i], accepted[i], reasons[i], readings[i], why[i]) for i, at in enumerate(message.answer)]
    parts = [column("samples." + name, getattr(message, name), total, missing) for name, missing in (
        ("voter", ""), ("input_tokens", 0), ("output_tokens", 0), ("cached_tokens", 0), ("text", ""), ("model", ""), ("key", b""))]
    made = [Sample(ballots[a:b], *part) for (a, b), *part in zip(itertools.pairwise(each_sample), *parts)]
    return [made[a:b] for a, b in itertools.pairwise(rows)]


# ---- Rankings


def rankings(results: list, failed: Failed, rows, reply) -> None:
    counts = rows.candidates.offsets
    lists = []
    for i, result in enumerate(failed.take(results)):
        try:
            lists.append([] if i in failed else _ranking(result, counts[i + 1] - counts[i]))
        except Exception as error:
            failed[i] = error
            lists.append([])
    reply.n, out = len(lists), reply.rankings
    out.offsets.extend(itertools.accumulate(map(len, lists), initial=0))
    out.candidate.extend([at for one in lists for at, _ in one])
    out.score.extend([score for one in lists for _, score in one])


def _ranking(result, n: int) -> list[tuple[int, float]]:
    """Scores, one for each candidate, in their order; or the ranking itself, best first."""
    if result is None:
        raise StageError("the stage returned None for a row; return a score for each candidate, or a list of Ranked")
    ranking = result.tolist() if _is_array(result) else list(result)
    if not ranking:
        return []
    if isinstance(ranking[0], Ranked):
        ranking = [(one.candidate, one.score) for one in ranking]
    elif not isinstance(ranking[0], tuple):
        if len(ranking) != n:
            raise StageError(f"the stage returned {len(ranking)} scores for {n} candidates")
        scores = [float(score) for score in ranking]
        if not all(map(math.isfinite, scores)):
            raise StageError("a score is not a finite number")
        return sorted(enumerate(scores), key=lambda pair: -pair[1])
    seen = set()
    for at, _ in ranking:
        if not 0 <= at < n:
            raise StageError(f"the stage ranked candidate {at} of {n}")
        if at in seen:
            raise StageError(f"the stage ranked candidate {at} twice")
        seen.add(at)
    return ranking


# ---- Prompts


def _prompts(result) -> list[Prompt]:
    every = result if isinstance(result, (list, tuple)) else [result]
    for one in every:
        if not isinstance(one, (str, Prompt)):
            raise StageError(f"the stage returned {type(one).__name__} for a row; return a text, a Prompt, or a list of those")
    return [Prompt(one) if isinstance(one, str) else one for one in every]


def prompts(results: list, failed: Failed, rows, reply) -> None:
    lists, names = _per_row(results, failed, _prompts, list), _Names()
    every = [prompt for one in lists for prompt in one]
    reply.n, out = len(lists), reply.prompts
    out.offsets.extend(itertools.accumulate(map(len, lists), initial=0))
    out.text.extend([valid(prompt.text) for prompt in every])
    if any(prompt.messages for prompt in every):
        out.chat.extend([_wire.Chat(messages=[_wire.Message(role=m.role, text=valid(m.text), shared=m.shared) for m in prompt.messages]) for prompt in every])
    if any(prompt.labels or prompt.none or prompt.fields or prompt.passages is not None for prompt in every):
        for prompt in every:
            allowed = out.allowed.add(labels=[names.number(label) for label in prompt.labels], none=valid(prompt.none), fields=[valid(name) for name in prompt.fields])
            if prompt.passages is not None:  # none are some, too: the answer is a text then as well
                allowed.passages.SetInParent()
                allowed.passages.ids.extend(map(valid, prompt.passages))
    out.names.extend(names.all())


def prompts_of(message, n: int) -> list[list[Prompt]]:
    total = len(message.text)
    at, names = offsets("prompts", message.offsets, n, total), list(message.names)
    chats, allowed = column("prompts.chat", message.chat, total, None), column("prompts.allowed", message.allowed, total, None)
    made = []
    for text, chat, allow in zip(message.text, chats, allowed):
        prompt = Prompt(text, [Message(m.role, m.text, m.shared) for m in chat.messages] if chat else [])
        if allow is not None:
            prompt.labels, prompt.none, prompt.fields = [names[k] for k in allow.labels], allow.none, list(allow.fields)
            prompt.passages = list(allow.passages.ids) if allow.HasField("passages") else None
        made.append(prompt)
    return [made[a:b] for a, b in itertools.pairwise(at)]


# ---- Verdicts, chunks, additions, vectors


def _verdict(result) -> Verdict:
    if result is None:
        return Verdict(reason="the election gave no answer")
    if not isinstance(result, Verdict):
        raise StageError(f"the stage returned {type(result).__name__} for a row; return a Verdict or None")
    return result


def verdicts(results: list, failed: Failed, rows, reply) -> None:
    every = _per_row(results, failed, _verdict, Verdict)
    reply.n, out = len(every), reply.verdicts
    out.answer.extend([valid(one.answer) for one in every])
    out.agreement.extend([one.agreement for one in every])
    out.reason.extend(some([valid(one.reason) for one in every]))
    out.confidence.extend(some([one.confidence for one in every]))


def chunks(results: list, failed: Failed, documents, reply) -> None:
    lists, spans, meta = [], [], []
    for i, (result, document) in enumerate(zip(failed.take(results), documents)):
        made: list[Chunk] = []
        try:
            made = [] if i in failed else [one if isinstance(one, Chunk) else Chunk(*one) for one in result]
            spans.append(_spans(made, document.text))
            meta.append([metadata(chunk.meta) for chunk in made])
        except Exception as error:
            failed[i], made = error, []
            spans[i:], meta[i:] = [[]], [[]]
        lists.append(made)
    every, placed = [chunk for one in lists for chunk in one], [span for one in spans for span in one]
    reply.n, out = len(lists), reply.chunks
    out.offsets.extend(itertools.accumulate(map(len, lists), initial=0))
    out.start.extend([span[0] for span in placed])
    out.end.extend([span[1] for span in placed])
    out.meta.extend(some([raw for one in meta for raw in one]))
    if any(chunk.header for chunk in every):
        out.header_start.extend([span[2] for span in placed])
        out.header_end.extend([span[3] for span in placed])


def _spans(made: list[Chunk], text: str) -> list[tuple[int, int, int, int]]:
    """The bytes of start, end and header of each chunk."""
    before, places = 0, {0}
    for chunk in made:
        head = chunk.header or (0, 0)
        if not before <= chunk.start < chunk.end <= len(text):
            raise StageError(f"a chunk has the characters {chunk.start} to {chunk.end} of {len(text)}: none is empty, and they stand in the order of their starts")
        if chunk.header and not 0 <= head[0] < head[1] <= chunk.start:
            raise StageError(f"the header of a chunk at {chunk.start} has the characters {head[0]} to {head[1]}: it stands before its chunk")
        before = chunk.start
        places.update((chunk.start, chunk.end, *head))
    at = utf8(text, list(places))
    return [(at[chunk.start], at[chunk.end], *(at[place] for place in chunk.header or (0, 0))) for chunk in made]


def _addition(result) -> Addition:
    if result is None or isinstance(result, str):
        return Addition(result or "")
    if not isinstance(result, Addition):
        raise StageError(f"the stage returned {type(result).__name__} for a passage; return a text, an Addition or None")
    return result


def additions(results: list, failed: Failed, passages, reply) -> None:
    every = _per_row(results, failed, _addition, Addition)
    reply.n = len(every)
    reply.context.extend(some([valid(one.context) for one in every]))
    if any(one.terms for one in every):
        reply.terms.offsets.extend(itertools.accumulate((len(one.terms) for one in every), initial=0))
        reply.terms.term.extend([valid(term) for one in every for term in one.terms])


def pack(vectors: list, dimension: int, failed: Failed) -> bytes:
    """Vectors one after the other; those that are None are zeros. One of another dimension fails alone."""
    packed, zeros = array.array("f"), [0.0] * dimension
    for i, vector in enumerate(vectors):
        if vector is None:
            packed.extend(zeros)
        elif len(vector) != dimension:
            failed[i] = StageError(f"a vector of dimension {len(vector)}, not {dimension}")
            packed.extend(zeros)
        else:
            packed.extend(vector)
    return packed.tobytes()


def embeddings(results, failed: Failed, n: int, dimension: int, reply) -> None:
    if _is_array(results):
        np = numpy()
        results = np.ascontiguousarray(results, dtype="<f4")
        if results.shape != (n, dimension):
            raise StageError(f"the stage returned an array of shape {results.shape}, not of {(n, dimension)}")
        raw = results.tobytes()
    else:
        raw = pack(failed.take(listed(results, n)), dimension, failed)
    reply.n = n
    if n > 0:
        reply.dimension, reply.vectors = dimension, raw
