"""Documents and passages, as a stage gets them."""
from __future__ import annotations

import itertools
import typing

from ._columns import characters, column, metadata_of, offsets
from ._errors import Invalid


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
    return [Document(id, text, metadata_of(meta)) for id, text, meta in zip(message.id, texts, metas)]


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
            passages.append(Passage(document, place[starts[k]], place[ends[k]], header, metadata_of(metas[k])))
    return passages
