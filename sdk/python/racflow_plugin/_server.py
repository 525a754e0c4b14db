"""The service of stage.proto. Whatever a stage does, there is a reply."""
from __future__ import annotations

import json
import logging
import pathlib
import threading
import typing
from concurrent import futures

import grpc

from . import _chunks, _documents, _prompts, _rankings, _store, _training, _vectors, _votes, _wire
from ._context import Context
from ._errors import Invalid, StageError, argument_errors, failure
from ._host import Host
from ._records import Draw, Pending
from ._results import Failed, listed
from ._rows import Rows
from ._stage import Setup, Stage, Stages, caller

_log = logging.getLogger("racflow")
_CLOSING = 0.2  # seconds that calls have left when the process is to end

# How the rows of a request and the results of a stage are read and written.
_BATCHES: dict[str, typing.Callable] = {"Prompt": _prompts.prompts, "Sample": _votes.samples, "Elect": _votes.verdicts, "Rerank": _rankings.rankings}
_DOCUMENTS = {"Chunk": (_documents.documents_of, _chunks.chunks), "Enrich": (_documents.passages_of, _chunks.additions)}
_KINDS = {"Prompt": "prompt", "Sample": "sample", "Elect": "elect", "Rerank": "rerank", "Chunk": "chunk", "Enrich": "enrich", "Embed": "embed"}


class Server:
    def __init__(self, plugin: Stages):
        self._plugin, self._lock = plugin, threading.Lock()
        self._active: set[Context] = set()
        self._stage: typing.Any = None
        self._info: Stage | None = None
        self._busy = self._closed = False
        self._host = Host()
        self._server: grpc.Server | None = None
        self._over = threading.Event()

    # ---- The process

    def start(self, address: str, key: bytes | None = None, certificate: bytes = b"", client: bytes = b"") -> int:
        """Listens at an address; without a key in the clear, as tests do. It returns the port."""
        options = [("grpc.max_receive_message_length", _wire.MOST_BYTES), ("grpc.max_send_message_length", _wire.MOST_BYTES)]
        pool = futures.ThreadPoolExecutor(_wire.MOST_CALLS + 8, "call")
        self._server = grpc.server(pool, options=options, handlers=self._handlers())
        if key is None:
            port = self._server.add_insecure_port(address)
        else:
            port = self._server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)], client, require_client_auth=True))
        self._server.start()
        return port

    def wait(self) -> None:
        """Waits for Shutdown, and closes the stage."""
        self._over.wait()
        self.close()

    def close(self) -> None:
        """Gives calls that are still worked on a moment, and closes the stage."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._server is not None:
            self._server.stop(_CLOSING).wait()
        if hasattr(self._stage, "close"):
            try:
                self._stage.close()
            except Exception:
                _log.exception("the stage did not close")
        self._host.close()

    def _handlers(self):
        own = {}
        for name, path, request, reply in _wire.methods("Stage"):
            behavior = self._behavior(name, reply)
            if behavior is None:
                continue
            make = grpc.stream_unary_rpc_method_handler if name == "Fit" else grpc.unary_unary_rpc_method_handler
            own[name] = make(behavior, request_deserializer=request.FromString, response_serializer=reply.SerializeToString)
        shutdown = grpc.unary_unary_rpc_method_handler(self._shutdown, request_deserializer=bytes, response_serializer=bytes)
        return (grpc.method_handlers_generic_handler("racflow.stage.v2.Stage", own),
                grpc.method_handlers_generic_handler("plugin.GRPCController", {"Shutdown": shutdown}))

    def _behavior(self, name: str, reply) -> typing.Callable | None:
        """What answers a method; None: the plugin has no stage of its kind."""
        kinds = {stage.kind for stage in self._plugin.stages}
        if name in ("Describe", "Configure", "Validate"):
            return getattr(self, "_" + name.lower())
        if name == "Alive":
            alive = self._alive
            return _in_a_pool_of_its_own(lambda request, call: alive())
        if name == "Fit":
            return (lambda requests, call: self._work(reply, call, self._fit, requests)) if any(s.fits for s in self._plugin.stages) else None
        if name in _KINDS:
            if _KINDS[name] not in kinds:
                return None
            work = self._embed if name == "Embed" else self._documents if name in _DOCUMENTS else self._rows
            return lambda request, call: self._work(reply, call, work, request, name)
        if "store" not in kinds:
            return None
        return lambda request, call: self._work(reply, call, self._store, request, name)

    def _shutdown(self, request: bytes, call) -> bytes:
        call.add_callback(self._over.set)  # when the reply has been sent
        return b""

    def _alive(self):
        with self._lock:
            return _wire.AliveReply(overdue=sum(context.cancelled for context in self._active))

    # ---- Setting up

    def _describe(self, request, call):
        return self._plugin.describe()

    def _validate(self, request, call):
        try:
            self._offered(request).make(request.config_json)
        except Exception as error:
            return _wire.ValidateReply(errors=argument_errors(_noted(error)))
        return _wire.ValidateReply()

    def _offered(self, request) -> Stage:
        kind = _wire.Kind.Name(request.kind).removeprefix("KIND_").lower() if request.kind in _wire.Kind.values() else str(request.kind)
        return self._plugin.find(kind, request.name)

    def _configure(self, request, call):
        with self._lock:
            if self._busy or self._stage is not None:
                call.abort(grpc.StatusCode.FAILED_PRECONDITION, "a process runs one stage, and this one has been configured")
            self._busy = True
        try:
            return self._open(request)
        except Exception as error:
            return _wire.ConfigureReply(errors=argument_errors(_noted(error)))
        finally:
            self._busy = False

    def _open(self, request):
        info = self._offered(request)
        stage = info.make(request.config_json)
        if request.HasField("host"):
            self._host = Host(request.host)
        if hasattr(stage, "open"):
            stage.open(Setup(block=request.block, state_dir=pathlib.Path(request.state_dir), samples=request.samples, many=request.labels.many,
                             levels=request.labels.levels, host=self._host,
                             log=logging.getLogger("racflow." + request.block)))
        reply = _wire.ConfigureReply(fits=info.fits)
        reply.fingerprint = " ".join(filter(None, (info.revision, str(stage.fingerprint()) if hasattr(stage, "fingerprint") else "")))
        if info.kind == "embed":
            dimension = getattr(stage, "dimension", None)
            if not isinstance(dimension, int) or dimension <= 0:
                raise StageError(f"the attribute dimension of an embedder is the length of its vectors, and it is {dimension!r}")
            reply.dimension = dimension
        if isinstance(getattr(stage, "draw", None), Draw):
            reply.random, reply.random_parts, reply.random_shared, reply.random_seed = stage.draw.count, stage.draw.parts, stage.draw.shared, stage.draw.seed
        if hasattr(stage, "resolved"):
            reply.resolved_json = json.dumps(stage.resolved(), separators=(",", ":")).encode()
        self._info, self._stage = info, stage
        return reply

    # ---- Work

    def _work(self, reply_class, call, work: typing.Callable, *request):
        """Does the work of a call, and puts what goes wrong into the reply."""
        if self._closed:
            call.abort(grpc.StatusCode.UNAVAILABLE, "the plugin is being closed")
        if self._stage is None:
            call.abort(grpc.StatusCode.FAILED_PRECONDITION, "Configure comes before all work")
        context = Context(call)
        with self._lock:
            self._active.add(context)
        try:
            reply = reply_class()
            context.check()
            work(reply, context, *request)
            if reply.ByteSize() > _wire.MOST_BYTES:
                raise Invalid(f"the reply has {reply.ByteSize() >> 20} MiB, more than the {_wire.MOST_BYTES >> 20} of a message; use smaller batches")
            return reply
        except BaseException as error:  # SystemExit, too: it would end this thread, and no call
            return reply_class(failure=failure(error if context.cancelled else _noted(error)))
        finally:
            with self._lock:
                self._active.discard(context)

    def _need(self, kind: str) -> None:
        if self._info.kind != kind:
            raise Invalid("a stage of this kind does not do that")

    def _call(self, method: str, handle: str, context: Context, arguments: tuple, **extras):
        """The results of a method, or of collect where the work has a handle."""
        if handle and not self._info.collects:
            raise Invalid("a stage without pends does not do that")
        if handle:
            return caller(self._stage, "collect", context=context, **extras)(handle, *arguments)
        return caller(self._stage, method, context=context, **extras)(*arguments)

    def _fill(self, reply, results, encode: typing.Callable) -> None:
        if isinstance(results, Pending):
            reply.pending.handle, reply.pending.note = results.handle, results.note
            reply.pending.poll_after_ms = max(int(results.poll_after * 1000 + 0.999), 0)
            return
        failed = Failed()
        encode(results, failed, reply.rows)
        for error in failed.values():
            _noted(error, logging.DEBUG)
        reply.errors.extend(failed.encode())

    def _rows(self, reply, context: Context, request, name: str) -> None:
        self._need(_KINDS[name])
        rows = Rows(request.rows, self._info.reads)
        results = self._call(_KINDS[name], getattr(request, "handle", ""), context, (rows,))
        self._fill(reply, results, lambda results, failed, out: _BATCHES[name](listed(results, len(rows)), failed, rows, out))

    def _documents(self, reply, context: Context, request, name: str) -> None:
        self._need(_KINDS[name])
        decode, encode = _DOCUMENTS[name]
        given = decode(request.rows)
        results = self._call(_KINDS[name], getattr(request, "handle", ""), context, (given,))
        self._fill(reply, results, lambda results, failed, out: encode(listed(results, len(given)), failed, given, out))

    def _embed(self, reply, context: Context, request, name: str) -> None:
        self._need("embed")
        texts, role = list(request.texts), "query" if request.role == _wire.Role.Value("ROLE_QUERY") else "passage"
        results = self._call("embed", request.handle, context, (texts,), role=role)
        self._fill(reply, results, lambda results, failed, out: _vectors.embeddings(results, failed, len(texts), self._stage.dimension, out))

    def _fit(self, reply, context: Context, requests) -> None:
        if not self._info.fits:
            raise Invalid("a stage of this kind does not do that")

        def rows():
            for request in requests:
                yield from _training.training_rows(request.rows)
            # To gRPC a stream that broke off may look like its end, for a moment. racflow takes what was written
            # for learnt only when it has had the reply, so this spares work and no more.
            context.check()
        caller(self._stage, "fit", context=context)(rows())

    def _store(self, reply, context: Context, request, name: str) -> None:
        self._need("store")
        _store.answer(self._stage, name, request, reply, context)


def _noted(error: BaseException, level: int = logging.ERROR) -> BaseException:
    """Logs the stack of an error that is the stage's own."""
    if not isinstance(error, StageError):
        _log.log(level, "an exception in the plugin", exc_info=error)
    return error


def _in_a_pool_of_its_own(behavior: typing.Callable) -> typing.Callable:
    """A behavior that is answered while all other threads work."""
    behavior.experimental_thread_pool = futures.ThreadPoolExecutor(1, "alive")  # where gRPC does not know that, it takes the others
    return behavior
