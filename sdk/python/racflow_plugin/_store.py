"""Stores: what they get, what they return, and how the two searches of a query become one ranking.

Fusion and filters are those of racflow's own stores, so that every store ranks alike.
"""
from __future__ import annotations

import dataclasses
import itertools
import math
import typing

from . import _wire
from ._columns import column, metadata, metadata_of, some, vectors_of
from ._errors import ArgumentError, Invalid, argument_errors, valid
from ._results import Failed, listed
from ._stage import caller
from ._vectors import pack

_UNSCORED = float("nan")
_DEEPEST = 32  # nesting of a filter


@dataclasses.dataclass
class Entry:
    """One stored unit of knowledge: a labelled text or a passage."""

    id: str
    text: str = ""
    label: str = ""
    context: str = ""  # lines and terms that were added to the text
    meta: dict = dataclasses.field(default_factory=dict)
    vector: typing.Any = None  # float32 values
    hash: bytes = b""  # of the content that the entry was made from


@dataclasses.dataclass
class Collection:
    """The committed state of a collection."""

    name: str
    entries: int
    dimension: int
    note: bytes = b""  # of the last commit


@dataclasses.dataclass
class AttachedField:
    """Where a part of the entries comes from, for people."""

    part: str  # "id", "text", "label", "context", "vector", "meta", or "sparse", by which words are searched
    field: str  # of the collection
    why: str  # "named in the file", "the only vector field"


@dataclasses.dataclass
class Attached:
    """A collection that another program makes, to be read. search, get and scan take its name; put, delete, commit and drop raise Invalid for it."""

    name: str
    id: str  # of what stands behind the name: another one after the swap of an alias, or where it was made anew
    entries: int  # as the server counts, deleted ones perhaps included
    dimension: int
    lexical: bool = False  # it can be searched by words; else a hybrid search has lexical=None, and a lexical one raises Invalid
    labels: bool = False  # entries have labels
    fields: "list[AttachedField]" = dataclasses.field(default_factory=list)
    notes: "list[str]" = dataclasses.field(default_factory=list)  # what it goes without and why, and how scores are read: a sentence each


@dataclasses.dataclass
class Hit:
    """An entry that one of the searches found. A score that is not known is NaN."""

    id: str
    dense: float = _UNSCORED  # cosine
    lexical: float = _UNSCORED  # BM25
    entry: "Entry | None" = None  # as much of it as Search.texts asks for; None: get is asked for it


@dataclasses.dataclass
class Hits:
    """The best entries of each search of a query, best first, ties in the order of the bytes of their ids. A search that was not
    asked for is None."""

    dense: "list[Hit] | None" = None
    lexical: "list[Hit] | None" = None


@dataclasses.dataclass
class Search:
    """How to search."""

    mode: str  # "hybrid", "dense" or "lexical"
    num_candidates: int  # that the dense and the lexical search each find
    texts: bool  # with text, context and meta of what is found
    norm: float = 0.0  # mean norm of an attached collection's vectors in a sample, where one is not 1; 0: all are, or nobody looked


@dataclasses.dataclass
class Query:
    """One query. Its vector is None in a lexical search."""

    text: str
    vector: "memoryview | None"
    filter: "Filter | None"  # None: among all entries; queries may share one


@dataclasses.dataclass
class Scan:
    """Which entries a page has, and which parts of them. id, label and hash are always there."""

    after: str  # Page.next of the page before; empty: from the start
    limit: int  # most entries of a page; 0: no limit
    labels: "list[str]"  # only those with one of these; none: all
    texts: bool
    vectors: bool


@dataclasses.dataclass
class Page:
    """A part of a collection."""

    entries: "list[Entry]"
    next: str = ""  # empty: this was the last page


@dataclasses.dataclass
class Filter:
    """Selects entries. op is "and", "or", "not" (of parts), or compares a field ("id", "label" or "meta", by its key) with
    values: "in", "<", "<=", ">", ">=", "prefix"."""

    op: str
    parts: "list[Filter]"
    field: str
    key: str
    values: list

    def match(self, id: str, label: str, meta: dict) -> bool:
        """Whether the filter selects an entry. Metadata that is missing or of another type fits no comparison."""
        if self.op == "and":
            return all(part.match(id, label, meta) for part in self.parts)
        if self.op == "or":
            return any(part.match(id, label, meta) for part in self.parts)
        if self.op == "not":
            return not self.parts[0].match(id, label, meta)
        have = id if self.field == "id" else label if self.field == "label" else meta.get(self.key)
        return any(_compare(self.op, have, want) for want in self.values)


_OPS = ("", "and", "or", "not", "in", "<", "<=", ">", ">=", "prefix")
_FIELDS = ("", "id", "label", "meta")


def _compare(op: str, have, want) -> bool:
    if isinstance(want, bool) or isinstance(have, bool):
        return op == "in" and have is want
    if isinstance(want, str):
        if not isinstance(have, str):
            return False
        if op == "prefix":
            return have.startswith(want)
        have, want = have.encode(), want.encode()  # strings are compared by their bytes
    elif not isinstance(have, (int, float)):
        return False
    return {"in": have == want, "<": have < want, "<=": have <= want, ">": have > want, ">=": have >= want}.get(op, False)


def filter_of(message, depth: int = _DEEPEST) -> Filter:
    if depth == 0:
        raise Invalid(f"a filter nests more than {_DEEPEST} deep")
    if not 0 < message.op < len(_OPS) or not 0 <= message.field < len(_FIELDS):
        raise Invalid(f"operator {message.op} or field {message.field} of a filter is unknown; a newer package may know it")
    op, field = _OPS[message.op], _FIELDS[message.field]
    values = [getattr(value, value.WhichOneof("value") or "", None) for value in message.values]
    made = Filter(op, [filter_of(part, depth - 1) for part in message.parts], field, message.key, values)
    if op in ("and", "or", "not"):
        fits = not field and not values and (op != "not" or len(made.parts) == 1)
    else:
        kinds = (str,) if field in ("id", "label") or op == "prefix" else (str, bool, float) if op == "in" else (str, float)
        fits = field and not made.parts and (op == "in" or len(values) == 1) and all(type(value) in kinds and value == value for value in values)
    if not fits:
        raise Invalid(f"a filter's {op} with {len(made.parts)} parts, field {field!r} and values {values!r}")
    return made


# ---- Rows of entries


def entries_of(message) -> list[Entry]:
    n, vectors, dimension = message.n, vectors_of(message), message.dimension
    if len(message.id) != n:
        raise Invalid(f"column id has {len(message.id)} values for {n} rows")
    texts, labels, contexts = (column(name, getattr(message, name), n, "") for name in ("text", "label", "context"))
    raw, hashes = column("meta", message.meta, n, b""), column("hash", message.hash, n, b"")
    return [Entry(id, texts[i], labels[i], contexts[i], metadata_of(raw[i]), None if vectors is None else vectors[i * dimension:(i + 1) * dimension], hashes[i])
            for i, id in enumerate(message.id)]


def _put_entries(entries: "list[Entry | None]", rows) -> None:
    every = [entry or Entry("") for entry in entries]
    rows.n = len(every)
    rows.id.extend([valid(entry.id) for entry in every])
    for name in ("text", "label", "context"):
        getattr(rows, name).extend(some([valid(getattr(entry, name)) for entry in every]))
    rows.meta.extend(some([metadata(entry.meta) for entry in every]))
    rows.hash.extend(some([bytes(entry.hash) for entry in every]))
    dimension = next((len(entry.vector) for entry in every if entry.vector is not None), 0)
    if dimension:
        failed = Failed()
        rows.dimension, rows.vectors = dimension, pack([entry.vector for entry in every], dimension, failed)
        for error in failed.values():
            raise error


# ---- One ranking of two searches


@dataclasses.dataclass
class _Found:
    id: str
    dense: float
    lexical: float
    entry: "Entry | None"
    dense_rank: int = 0  # from 1; 0: this search did not find it
    lexical_rank: int = 0
    score: float = 0.0


def fuse(hits: Hits, method: str, dense_weight: float, k: int, top_k: int) -> list[_Found]:
    """The best of both searches. "weighted" adds the scores, the lexical ones as shares of the highest; "rrf" adds 1/(k+rank), as
    Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009."""
    union: dict[str, _Found] = {}
    for rank, hit in enumerate(hits.dense or (), 1):
        union[hit.id] = _Found(hit.id, hit.dense, hit.lexical, hit.entry, dense_rank=rank)
    for rank, hit in enumerate(hits.lexical or (), 1):
        found = union.get(hit.id)
        if found is None:
            union[hit.id] = _Found(hit.id, hit.dense, hit.lexical, hit.entry, lexical_rank=rank)
        else:
            found.lexical, found.lexical_rank, found.entry = hit.lexical, rank, found.entry or hit.entry
    if method == "rrf":
        for found in union.values():
            found.score = sum(1 / (k + rank) for rank in (found.dense_rank, found.lexical_rank) if rank)
    else:
        dense = 1.0 if hits.lexical is None else 0.0 if hits.dense is None else dense_weight
        top = max((found.lexical for found in union.values() if found.lexical > 0), default=1.0)
        for found in union.values():
            found.score = dense * _known(found.dense) + (1 - dense) * _known(found.lexical) / top
    best = sorted(union.values(), key=lambda f: (-f.score, *_last(f.dense), *_last(f.lexical), f.id.encode()))
    return best[:max(top_k, 0)]


def _known(score: float) -> float:
    return 0.0 if math.isnan(score) else score


def _last(score: float) -> tuple[bool, float]:
    """Highest first, and what is not scored last."""
    return (True, 0.0) if math.isnan(score) else (False, -score)


# ---- Methods


def answer(stage, name: str, request, reply, context) -> None:
    """Answers a method of a store."""
    def call(method: str, *arguments):
        return caller(stage, method, context=context)(*arguments)

    if name == "OpenCollection":
        _put_collection(call("open_collection", request.collection, request.dimension, request.analyzer), reply.collection)
    elif name == "Attach":
        if not callable(getattr(stage, "attach", None)):
            raise Invalid("this store serves no collection that another program makes")
        try:
            _put_attached(call("attach"), reply.attached)
        except ArgumentError as error:
            reply.errors.extend(argument_errors(error))
    elif name == "ListCollections":
        for each in call("list_collections"):
            _put_collection(each, reply.collections.add())
    elif name == "Put":
        failed = Failed(call("put", request.collection, entries_of(request.rows)) or {})
        reply.errors.extend(failed.encode())
    elif name == "Delete":
        call("delete", request.collection, list(request.ids))
    elif name == "Commit":
        call("commit", request.collection, request.note)
    elif name == "Drop":
        call("drop", request.collection)
    elif name == "Get":
        _put_entries(listed(call("get", request.collection, list(request.ids)), len(request.ids)), reply.rows)
    elif name == "Scan":
        page = call("scan", request.collection, Scan(request.after, request.limit, list(request.labels), request.texts, request.vectors))
        _put_entries(page.entries, reply.rows)
        reply.cursor = page.next
    elif name == "Search":
        _search(call, request, reply)
    else:
        raise Invalid(f"the package does not know the method {name}")


def _put_collection(made: Collection, message) -> None:
    message.name, message.entries, message.dimension, message.note = valid(made.name), made.entries, made.dimension, made.note


def _put_attached(found: Attached, message) -> None:
    message.name, message.id, message.entries, message.dimension = valid(found.name), valid(found.id), found.entries, found.dimension
    message.lexical, message.labels = found.lexical, found.labels
    message.notes.extend(map(valid, found.notes))
    for field in found.fields:
        message.fields.add(part=valid(field.part), field=valid(field.field), why=valid(field.why))


def _search(call: typing.Callable, request, reply) -> None:
    mode, method = (enum.Name(value).split("_", 1)[1].lower() if value in enum.values() else "unspecified"
                    for enum, value in ((_wire.Mode, request.mode), (_wire.Fusion, request.fusion)))
    if mode == "unspecified" or method == "unspecified" or method == "weighted" and not 0 <= request.dense_weight <= 1:
        raise Invalid(f"search mode {request.mode} or fusion {request.fusion} with the weight {request.dense_weight} is unknown; a newer package may know it")
    n, rows = request.queries.n, request.queries
    vectors, dimension = vectors_of(rows), rows.dimension
    filters, numbers = [filter_of(each) for each in request.filters], column("query_filter", request.query_filter, n, 0)
    if len(rows.text) != n or any(number > len(filters) for number in numbers):
        raise Invalid(f"{len(rows.text)} texts and filters up to {max(numbers, default=0)} of {len(filters)} for {n} queries")
    queries = [Query(text, None if vectors is None else vectors[i * dimension:(i + 1) * dimension], filters[numbers[i] - 1] if numbers[i] else None)
               for i, text in enumerate(rows.text)]
    depth = request.num_candidates if mode == "hybrid" else min(request.num_candidates, request.top_k)
    failed = Failed()
    results = failed.take(listed(call("search", request.collection, Search(mode, depth, request.texts, request.norm), queries), n))
    lists = [[] if hits is None else fuse(hits, method, request.dense_weight, request.rrf_k, request.top_k) for hits in results]
    bare = list(dict.fromkeys(found.id for one in lists for found in one if found.entry is None))
    known = dict(zip(bare, listed(call("get", request.collection, bare), len(bare)))) if bare else {}
    for one in lists:
        for found in one:
            found.entry = found.entry or known.get(found.id)
    lists = [[found for found in one if found.entry is not None and found.entry.id] for one in lists]  # some may be deleted by now
    _put_candidates(lists, request.texts, reply.rows)
    reply.errors.extend(failed.encode())


def _put_candidates(lists: list[list[_Found]], texts: bool, rows) -> None:
    every, names = [found for one in lists for found in one], {}
    rows.n, out = len(lists), rows.candidates
    out.offsets.extend(itertools.accumulate(map(len, lists), initial=0))
    out.label.extend([names.setdefault(found.entry.label, len(names)) for found in every])
    out.names.extend(map(valid, names))
    ids = [valid(found.id) for found in every]
    out.ids = "".join(ids)
    out.id_bytes.extend([len(id.encode()) for id in ids])
    out.score.extend([found.score for found in every])
    for name in ("dense", "lexical"):
        scores = [getattr(found, name) for found in every]
        getattr(out, name).extend([] if all(map(math.isnan, scores)) else scores)
    if texts:
        out.text.extend(some([valid(found.entry.text) for found in every]))
        out.context.extend(some([valid(found.entry.context) for found in every]))
        out.meta.extend(some([metadata(found.entry.meta) for found in every]))
