"""The pipeline: what most programs use."""
from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import json
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from . import _frames, _http
from ._binary import inputs, report
from ._errors import ItemError
from ._reports import Evaluation, Plan, Promise
from ._results import Result
from ._server import Server, _forked, gather

_Path = str | os.PathLike[str]


class Pipeline:
    """A pipeline of a file, kept ready by a process of its own.

    The process starts at the first answer, which takes seconds, and ends with ``close``, with the object or with the
    program, however that ends. Threads and tasks may share a Pipeline; a forked process gets a process of its own. A
    pickled Pipeline is its arguments.

    Args:
        file: the pipeline file; None: ``pipeline.hcl`` in the working directory.
        vars: values of the file's variables. Numbers, booleans, lists and mappings are as JSON has them; None leaves the file's.
        var_files: files with values of variables, such as ``Promise.save`` writes.
        set: values of arguments of blocks, such as ``{"model.llm.batch": True}``.
        pipeline: the pipeline's name, where the file has several.
        state: the folder that keeps knowledge and runs; None: ``.racflow`` in the working directory.
        trust: what the file may do beyond its folder without a question: True for all, or hosts, secrets, files, plugins.
        max_cost: stop before calls of models cost more, in the unit of the file's prices.
        offline: call no model, and answer from the cache.
        plugins: folders of plugins that are being developed.
        watch: rebuild the knowledge when a file that it is made from changes.
        timeout: seconds that one answer may take; None: 120.
        variables: further values of variables.
    """

    def __init__(
        self, file: _Path | None = None, *, vars: Mapping[str, Any] | None = None, var_files: Iterable[_Path] = (),
        set: Mapping[str, Any] | None = None, pipeline: str | None = None, state: _Path | None = None,
        trust: bool | str | Iterable[str] | None = None, max_cost: float | None = None,
        offline: bool = False, plugins: Iterable[_Path] = (), watch: bool = True, timeout: float | None = None, **variables: Any,
    ) -> None:
        flags = [] if file is None else [os.fspath(file)]
        flags += [f"--var={name}={_written(value)}" for name, value in {**(vars or {}), **variables}.items() if value is not None]
        flags += [f"--var-file={os.fspath(path)}" for path in var_files]
        flags += [f"--set={name}={_written(value)}" for name, value in (set or {}).items()]
        flags += [f"--plugins={os.fspath(path)}" for path in plugins]
        flags += [] if pipeline is None else [f"--pipeline={pipeline}"]
        flags += [] if state is None else [f"--state={os.fspath(state)}"]
        if trust:
            flags.append("--trust=" + ("all" if trust is True else trust if isinstance(trust, str) else ",".join(trust)))
        calls = ([] if max_cost is None else [f"--max-cost={max_cost}"]) + (["--offline"] if offline else [])
        serve = ([] if watch else ["--watch=false"]) + ([] if timeout is None else [f"--timeout={timeout}s"])
        self.__setstate__({"flags": flags, "calls": calls, "serve": serve, "state": state})

    def __getstate__(self) -> dict[str, Any]:
        return self._arguments

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._cwd = os.getcwd()  # paths are relative to where the program was then
        self._server: Server | None = None
        self._starting = threading.Lock()
        _forked.add(self)

    def _forget(self) -> None:
        """Lets go of the parent's process after a fork, during which another thread may have held the lock."""
        self._server, self._starting = None, threading.Lock()

    def start(self) -> Pipeline:
        """Starts the process, which builds the knowledge if that is not done. Raises PipelineError if it cannot."""
        self._running()
        return self

    def _running(self) -> Server:
        with self._starting:
            if self._server is None or not self._server.running:
                self.close()
                self._server = Server(self._flags, self._arguments["calls"] + self._arguments["serve"], self._cwd)
            return self._server

    def close(self) -> None:
        """Ends the process; answers that are under way raise Error. A later call starts it again."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def __enter__(self) -> Pipeline:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Pipeline({' '.join(self._flags)})"

    @property
    def _flags(self) -> list[str]:
        flags: list[str] = self._arguments["flags"]
        return flags

    def answer(self, text: str, *, id: str | None = None, meta: Mapping[str, Any] | None = None) -> Result:
        """Answers one text. meta is for prompts and rules of the file. Raises ItemError if the text has no answer."""
        server = self._running()
        return Result(json.loads(server.ask(_path(server), _item(text, id, meta))[0]))

    async def aanswer(self, text: str, *, id: str | None = None, meta: Mapping[str, Any] | None = None) -> Result:
        """Does what answer does. Cancelling it cancels the request."""
        server = await asyncio.to_thread(self._running)
        return Result(json.loads((await server.aask(_path(server), _item(text, id, meta)))[0]))

    def decide(self, state: Any, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Answers typed questions about a text, all from one search. Raises ItemError where a question or the text cannot be used.

        Args:
            state: the text; or a mapping with one as ``text``, whose other fields are metadata.
            questions: by ids of your choice, in the form of TypeSafe's clients: ``{"type": "noul", "instructions": LABEL}``, ``{"type":
                "choice", "criteria": {LABEL: None, ..., "none": None}}`` or ``{"type": "score", "criteria": [LABEL, ...]}``.

        Returns:
            answers by those ids, such as ``{"type": "choice", "choice": ..., "probabilities": {...}, "confidence": ...}``.
        """
        server = self._running()
        return _decided(server.ask("/v1/systemone", _decision(server, state, questions)))

    async def adecide(self, state: Any, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Does what decide does. Cancelling it cancels the request."""
        server = await asyncio.to_thread(self._running)
        return _decided(await server.aask("/v1/systemone", _decision(server, state, questions)))

    def ask(self, question: str) -> Result:
        """Answers a question. The result has the passages that were found, and citations. Raises ItemError if it fails."""
        server = self._running()
        return _asked(server.ask(_path(server), _item(question), "text/event-stream"))

    async def aask(self, question: str) -> Result:
        """Does what ask does. Cancelling it cancels the request."""
        server = await asyncio.to_thread(self._running)
        return _asked(await server.aask(_path(server), _item(question), "text/event-stream"))

    def run(self, data: Any, *, text: str = "text", label: str | None = None, id: str | None = None, progress: bool = False) -> Any:
        """Answers many texts. A row that fails has an error, and others go on.

        Args:
            data: a data frame or a column of pandas, polars or pyarrow; or texts, or mappings with text and perhaps id,
                label and meta. A missing text is the error of its row.
            text: the frame's column with the texts; a frame without a column text has that of the file's input.
            label, id: its columns with labels and ids.
            progress: show how far it is, by tqdm.

        Returns:
            For a frame or a column, a frame of the same kind, with the same index, and the columns answer, confidence,
            flagged, votes, error, and labels where the election lists them. For a list or whatever else has a length, a
            list of Result. For another iterable an iterator of Result, which takes from it as it goes.
        """
        _check(data)
        stream = self._stream(self._items(data, text=text, label=label, id=id), len(data) if hasattr(data, "__len__") else None, progress)
        if _frames.kind(data):
            return _frames.framed(data, list(stream))
        return list(stream) if hasattr(data, "__len__") else stream

    def _items(self, data: Any, **columns: str | None) -> Iterator[dict[str, Any]]:
        """Returns the items of data. Where a frame lacks a column of the usual name, that of the file's input takes its place."""
        if _frames.tabular(data):
            known = _frames.names(data)
            lacking = [what for what in ("text", "label") if columns.get(what) == what and what not in known]
            named = next((flag.partition("=")[2] for flag in self._flags if flag.startswith("--pipeline=")), None)
            for own in inputs(self._flags, self._cwd) if lacking else ():
                if named in (None, own["pipeline"]):
                    columns |= {what: own[what] for what in lacking if own.get(what) in known}
                    break
        return _frames.items(data, **columns)

    def _stream(self, items: Iterator[dict[str, Any]], total: int | None, progress: bool) -> Iterator[Result]:
        server = self._running()
        with _bar(progress, total) as bar:
            for line in server.stream(_path(server), map(_line, items)):
                if bar is not None:
                    bar.update()
                yield Result(json.loads(line))

    def arun(self, data: Any, *, text: str = "text", label: str | None = None, id: str | None = None, progress: bool = False) -> Any:
        """Does what run does: awaitable for what has a length, an asynchronous iterator for other iterables, asynchronous ones, too."""
        _check(data)
        total = len(data) if hasattr(data, "__len__") else None
        if hasattr(data, "__aiter__"):
            chunks = _one_by_one(data)
        else:
            chunks = _gathered(map(_line, self._items(data, text=text, label=label, id=id)))
        stream = self._astream(chunks, total, progress)
        return stream if total is None else self._collect(data, stream)

    async def _collect(self, data: Any, stream: AsyncIterator[Result]) -> Any:
        results = [one async for one in stream]
        return _frames.framed(data, results) if _frames.kind(data) else results

    async def _astream(self, chunks: AsyncIterator[tuple[int, bytes]], total: int | None, progress: bool) -> AsyncIterator[Result]:
        server = await asyncio.to_thread(self._running)
        lines = server.astream(_path(server), chunks)
        with _bar(progress, total) as bar:
            try:
                async for line in lines:
                    if bar is not None:
                        bar.update()
                    yield Result(json.loads(line))
            finally:
                await lines.aclose()

    def eval(
        self, data: Any = None, *, text: str = "text", label: str | None = "label", id: str | None = None, gold: str | None = None,
        folds: int | None = None, limit: int | None = None,
    ) -> Evaluation:
        """Measures the pipeline.

        Args:
            data: a file, or what run takes, with labels or gold passages; None: the file's own input.
            text, label, id, gold: the columns of a frame; without columns text and label those of the file's input.
            folds: measure on the rows of the knowledge instead, in so many folds.
            limit: stop after so many items.

        Raises PipelineError.
        """
        more = ([] if folds is None else [f"--folds={folds}"]) + ([] if limit is None else [f"--limit={limit}"])
        return Evaluation(self._report("eval", data, self._arguments["calls"] + more, text=text, label=label, id=id, gold=gold))

    def plan(self, data: Any = None, *, text: str = "text", id: str | None = None) -> Plan:
        """Says what a run over data, or over the file's own input, would build, call and cost. It calls no service."""
        return Plan(self._report("plan", data, [], text=text, id=id))

    def tune(
        self, data: Any, *, accuracy: float | None = None, confidence: float = 0.95, variable: str | None = None, text: str = "text",
        label: str | None = "label", id: str | None = None, gold: str | None = None,
    ) -> Promise:
        """Finds values of the file's variables on a held-out validation set.

        Args:
            data: a file, or what run takes, with labels or gold passages.
            accuracy: guarantee that at least this share (0 to 1) of the answers without a flag is right, for texts like data's.
            confidence: the confidence (0 to 1) of that.
            variable: find this threshold alone; with that of the flag rule, all rows serve the promise.
            text, label, id, gold: the columns of a frame.

        Raises PipelineError, also if the rows do not allow the promise.
        """
        more = [] if accuracy is None else [f"--accuracy={accuracy}", f"--confidence={confidence}"]
        more += [] if variable is None else [f"--variable={variable}"]
        return Promise(self._report("tune", data, self._arguments["calls"] + more, text=text, label=label, id=id, gold=gold), self)

    def _report(self, command: str, data: Any, more: Sequence[str], **columns: str | None) -> dict[str, Any]:
        if data is None:
            return report(command, self._flags, *more, cwd=self._cwd)
        if isinstance(data, (str, os.PathLike)):
            return report(command, self._flags, *more, f"--input={os.path.abspath(data)}", cwd=self._cwd)
        with tempfile.TemporaryDirectory(prefix="racflow-") as folder:
            path = os.path.join(folder, "input.jsonl")
            with open(path, "wb") as file:
                names: dict[str, None] = {}
                for item in self._items(data, **columns):
                    names.update(dict.fromkeys(item))
                    file.write(json.dumps(item, default=str).encode() + b"\n")
            # Whatever the file calls the columns of its own input.
            mapped = [f"--column={name}={name}" for name in names if name in ("text", "label", "id", "gold")]
            return report(command, self._flags, *more, *mapped, f"--input={path}", cwd=self._cwd)

    def _tuned(self, promise: Promise) -> Pipeline:
        folder = os.path.join(self._cwd, self._arguments["state"] or ".racflow")
        path = os.path.join(folder, f"tuned-{hashlib.sha256(promise.variables.encode()).hexdigest()[:12]}.hclvars")
        promise.save(path)
        tuned = Pipeline.__new__(Pipeline)
        tuned.__setstate__({**self._arguments, "flags": [*self._flags, f"--var-file={path}"]})
        return tuned


def _written(value: Any) -> str:
    """Returns a value as -var and -set read it."""
    return value if isinstance(value, str) else os.fspath(value) if isinstance(value, os.PathLike) else json.dumps(value)


def _path(server: Server) -> str:
    return f"/v1/pipelines/{server.pipelines[0]}/answer"


def _line(item: Mapping[str, Any]) -> bytes:
    # A text that is no Unicode becomes a line that is no UTF-8, which is the row's error.
    kept = {what: value for what, value in item.items() if value is not None}
    if isinstance(kept.get("label"), list):
        kept["label"] = "; ".join(map(str, kept["label"])) or "[]"
    return json.dumps(kept, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n"


def _item(text: str, id: str | None = None, meta: Mapping[str, Any] | None = None) -> bytes:
    return _line(_frames.item({"text": text, "id": id, "meta": meta}))


def _decision(server: Server, state: Any, questions: Mapping[str, Mapping[str, Any]]) -> bytes:
    return json.dumps({"model": server.pipelines[0], "state": state, "questions": questions}, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _decided(lines: list[bytes]) -> dict[str, dict[str, Any]]:
    answers: dict[str, dict[str, Any]] = json.loads(b"\n".join(lines))["answers"]
    return answers


def _asked(lines: list[bytes]) -> Result:
    """Reads events of a pipeline: those of stages, which have passages, and the result or an error."""
    event = ""
    passages: list[dict[str, Any]] = []
    for line in lines:
        name, _, value = line.decode().partition(": ")
        if name == "event":
            event = value
        elif name == "data" and event == "stage":
            passages = json.loads(value).get("candidates") or passages
        elif name == "data" and event == "result":
            return Result(json.loads(value), passages)
        elif name == "data":
            raise _http.problem(value)
    raise ItemError("racflow ended before the answer was complete")


def _check(data: Any) -> None:
    if isinstance(data, (str, bytes, Mapping)):
        raise TypeError("run takes many texts: a data frame, a list or another iterable; answer takes one")


async def _gathered(lines: Iterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    for one in gather(lines):
        yield one


async def _one_by_one(items: AsyncIterator[Any]) -> AsyncIterator[tuple[int, bytes]]:
    async for item in items:
        yield 1, _line(_frames.item(item))


def _bar(progress: bool, total: int | None) -> Any:
    if not progress:
        return contextlib.nullcontext()
    return importlib.import_module("tqdm.auto").tqdm(total=total, unit="text")
