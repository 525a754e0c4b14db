"""What stages get and return, row by row."""
from __future__ import annotations

import dataclasses
import typing


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
    distance: float = 0.0  # how far the text lies from what the voter has learnt from, up to 1; 0: it does not say


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
    levels: str = ""  # what stands between the levels of labels if the model is to be asked level by level; the chat shows the nodes of the first


@dataclasses.dataclass
class Verdict:
    """What an election decides for one row."""

    answer: str = ""  # empty: none
    agreement: float = 0.0  # 0 to 1: the share of the votes that it got
    reason: str = ""  # why there is no answer
    confidence: float = 0.0  # 0 to 1: the probability that it is right; 0: not estimated
    unknown: float = 0.0  # 0 to 1: the probability that the text belongs to none of the labels; 0: not estimated
    # the labels of a set, the surest first, or the nodes of a tree from the top down, each with the probability that it is right
    labels: "list[tuple[str, float]]" = dataclasses.field(default_factory=list)


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
