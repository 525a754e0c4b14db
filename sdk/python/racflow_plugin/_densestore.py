"""A store that needs nothing but a way to score vectors."""
from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import threading

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

from ._columns import numpy
from ._errors import Invalid, StageError, Transient
from ._store import Collection, Entry, Hit, Hits, Page


class _State:
    """A collection as it was committed. It never changes."""

    def __init__(self, name: str, dimension: int, note: bytes, entries: dict[str, Entry]):
        self.name, self.dimension, self.note = name, dimension, note
        self.entries = dict(sorted(entries.items()))
        np = numpy()
        self.ids = np.array(list(self.entries), dtype=object)
        rows = [np.asarray(entry.vector, np.float32) for entry in self.entries.values()]
        self.vectors = np.stack(rows) if rows else np.zeros((0, dimension), np.float32)
        norms = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        self.vectors = self.vectors / np.where(norms > 0, norms, 1)

    def collection(self) -> Collection:
        return Collection(self.name, len(self.entries), self.dimension, self.note)


class DenseStore:
    """The base class of a store whose entries fit into memory and that is searched by vectors alone.

    What is left to its author is the method scores. Each commit is a file in the stage's folder, written whole. It needs
    numpy. It has no lexical search: the knowledge block says analyzer = "", and retrieve says mode = "dense". Decorate
    the class with filters=True: filters work.
    """

    def scores(self, vectors, query):
        """The similarity of each of the vectors, an array of numpy of norm 1 each (or all zero), to a query's vector of norm 1."""
        raise NotImplementedError

    def open(self, setup) -> None:
        self._dir, self._lock = pathlib.Path(setup.state_dir) / "collections", threading.RLock()
        self._states: dict[str, _State] = {}
        self._changes: dict[str, dict[str, Entry | None]] = {}
        self._locks: dict[str, int] = {}  # of the collections that are being changed
        self._dir.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        with self._lock:
            for name in list(self._locks):
                self._release(name)

    def open_collection(self, name: str, dimension: int, analyzer: str) -> Collection:
        if not name:
            raise Invalid("a collection has a name")
        if analyzer:
            raise Invalid(f'this store has no lexical search, and the knowledge block wants the words of analyzer "{analyzer}": say analyzer = "" there, and mode = "dense" in retrieve')
        with self._lock:
            self._release(name)
            if self._file(name).exists():
                self._states[name] = self._read(self._file(name))
            else:
                self._write(_State(name, dimension, b"", {}))
            state = self._states[name]
            if state.dimension != dimension:
                del self._states[name]
                raise Invalid(f"collection {name} was made for vectors of dimension {state.dimension}, not {dimension}: build it anew")
            return state.collection()

    def put(self, name: str, entries: list[Entry]) -> None:
        np, dimension = numpy(), self._open(name).dimension
        for entry in entries:
            if not entry.id or entry.vector is None or len(entry.vector) != dimension or not np.isfinite(np.asarray(entry.vector)).all():
                raise Invalid(f"entry {entry.id!r} has no id, or a vector that is not of {dimension} finite numbers")
        with self._lock:
            self._acquire(name)
            self._changes[name].update((entry.id, entry) for entry in entries)

    def delete(self, name: str, ids: list[str]) -> None:
        self._open(name)
        with self._lock:
            self._acquire(name)
            self._changes[name].update((id, None) for id in ids)

    def commit(self, name: str, note: bytes) -> None:
        with self._lock:
            self._open(name)
            self._acquire(name)
            state = self._open(name)
            entries = {id: entry for id, entry in {**state.entries, **self._changes[name]}.items() if entry is not None}
            self._write(_State(name, state.dimension, note, entries))
            self._release(name)

    def search(self, name: str, search, queries) -> list:
        if search.mode != "dense":
            raise Invalid(f'this store has no lexical search: say mode = "dense" in retrieve, and not "{search.mode}"')
        state, np, results = self._open(name), numpy(), []
        for query in queries:
            vector = np.asarray(query.vector if query.vector is not None else [], np.float32)
            norm = float(np.linalg.norm(vector))
            if vector.shape != (state.dimension,) or not np.isfinite(norm):
                results.append(Invalid(f"the vector of a query has {vector.size} numbers, and not {state.dimension} finite ones"))
                continue
            places = np.arange(len(state.entries))
            if query.filter is not None:
                chosen = [query.filter.match(entry.id, entry.label, entry.meta) for entry in state.entries.values()]
                places = places[np.array(chosen, dtype=bool)]
            if norm == 0 or not len(places):
                results.append(Hits(dense=[]))
                continue
            scores = np.asarray(self.scores(state.vectors[places], vector / norm), np.float32)
            if scores.shape != places.shape:
                raise StageError(f"scores returned an array of shape {scores.shape}, not of {places.shape}")
            order = np.argsort(-scores, kind="stable")[:search.num_candidates]  # entries stand in the order of their ids
            results.append(Hits(dense=[Hit(id, float(score), entry=state.entries[id]) for id, score in zip(state.ids[places[order]], scores[order])]))
        return results

    def get(self, name: str, ids: list[str]) -> list:
        entries = self._open(name).entries
        return [_parts(entries[id], texts=True, vectors=False) if id in entries else None for id in ids]

    def scan(self, name: str, scan) -> Page:
        page, size = [], 0
        for entry in self._open(name).entries.values():
            if scan.after and entry.id <= scan.after or scan.labels and entry.label not in scan.labels:
                continue
            part = _parts(entry, scan.texts, scan.vectors)
            size += 200 + 4 * len(part.text) + 4 * len(part.context) + (0 if part.vector is None else 4 * len(part.vector)) + len(json.dumps(part.meta))
            if page and (scan.limit and len(page) == scan.limit or size > 32 << 20):  # a message has at most 64 MiB
                return Page(page, page[-1].id)
            page.append(part)
        return Page(page)

    def list_collections(self) -> list[Collection]:
        made = []
        for path in self._dir.glob("*.json"):
            try:
                made.append(self._read(path).collection())
            except (StageError, OSError):  # those that cannot be read are left out
                pass
        return sorted(made, key=lambda each: each.name)

    def drop(self, name: str) -> None:
        with self._lock:
            self._acquire(name)
            self._file(name).unlink(missing_ok=True)
            self._release(name)
            self._states.pop(name, None)
            self._changes.pop(name, None)

    def _open(self, name: str) -> _State:
        state = self._states.get(name)
        if state is None:
            raise Invalid(f"collection {name} is not open")
        return state

    def _acquire(self, name: str) -> None:
        """Keeps other processes from changing a collection, until it is committed or opened anew."""
        if name in self._locks or fcntl is None:
            return
        file = os.open(self._file(name).with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise Transient(f"another process changes collection {name}", retry_after=1) from None
        except OSError as error:  # the file system does not lock files
            if os.environ.get("RACFLOW_NOLOCK") != "1":
                os.close(file)
                raise StageError(f"{self._file(name)} cannot be locked ({error}): use a folder on a disk of this machine, "
                                 "or set RACFLOW_NOLOCK=1 and let only one racflow command at a time use the folder") from None
        self._locks[name] = file
        if name in self._states and self._file(name).exists():  # with what another one has committed meanwhile
            self._states[name] = self._read(self._file(name))

    def _release(self, name: str) -> None:
        """Forgets what was not committed."""
        self._changes[name] = {}
        if name in self._locks:
            os.close(self._locks.pop(name))

    def _file(self, name: str) -> pathlib.Path:
        return self._dir / (hashlib.sha256(name.encode()).hexdigest() + ".json")

    def _read(self, path: pathlib.Path) -> _State:
        try:
            read = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise StageError(f"{path} is damaged ({error}): remove it and build the knowledge anew") from error
        np = numpy()
        entries = [Entry(**{**each, "hash": base64.b64decode(each["hash"]), "vector": np.frombuffer(base64.b64decode(each["vector"]), "<f4")})
                   for each in read["entries"]]
        return _State(read["name"], read["dimension"], base64.b64decode(read["note"]), {entry.id: entry for entry in entries})

    def _write(self, state: _State) -> None:
        """Writes a state whole or not at all, and makes it the one that is read."""
        np = numpy()
        made = {"name": state.name, "dimension": state.dimension, "note": base64.b64encode(state.note).decode(), "entries": [
            {"id": e.id, "text": e.text, "label": e.label, "context": e.context, "meta": e.meta, "hash": base64.b64encode(e.hash).decode(),
             "vector": base64.b64encode(np.asarray(e.vector, "<f4").tobytes()).decode()} for e in state.entries.values()]}
        path = self._file(state.name)
        fresh = path.with_suffix(".new")
        try:
            with open(fresh, "w", encoding="utf-8") as file:
                json.dump(made, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
            folder = os.open(self._dir, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise Transient(f"the collection could not be written: {error}") from error
        self._states[state.name] = state


def _parts(entry: Entry, texts: bool, vectors: bool) -> Entry:
    return Entry(entry.id, entry.text if texts else "", entry.label, entry.context if texts else "", entry.meta if texts else {},
                 entry.vector if vectors else None, entry.hash)
