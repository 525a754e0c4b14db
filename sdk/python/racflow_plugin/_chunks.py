"""Chunks, and what enrichers add to passages, as columns."""
from __future__ import annotations

import itertools

from ._columns import metadata, some, utf8
from ._errors import StageError, valid
from ._records import Addition, Chunk
from ._results import Failed, per_row


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
    every = per_row(results, failed, _addition, Addition)
    reply.n = len(every)
    reply.context.extend(some([valid(one.context) for one in every]))
    if any(one.terms for one in every):
        reply.terms.offsets.extend(itertools.accumulate((len(one.terms) for one in every), initial=0))
        reply.terms.term.extend([valid(term) for one in every for term in one.terms])
