"""What a stage learns from."""
from __future__ import annotations

import typing

from ._columns import column, vectors_of
from ._votes import samples_of


class TrainingRow(typing.NamedTuple):
    """What a stage learns from. text, vector and samples are there where fit_reads names them."""

    id: str
    label: str
    text: str
    vector: "memoryview | None"
    samples: list
    held_out: bool  # it is one of the knowledge, kept out of what the voters saw


def training_rows(message) -> typing.Iterator[TrainingRow]:
    n, vectors = message.n, vectors_of(message)
    texts, samples = column("text", message.text, n, ""), samples_of(message.samples, n)
    labels, held = column("label", message.label, n, ""), column("held_out", message.held_out, n, False)
    for i, id in enumerate(message.id):
        vector = None if vectors is None else vectors[i * message.dimension:(i + 1) * message.dimension]
        yield TrainingRow(id, labels[i], texts[i], vector, samples[i], held[i])
