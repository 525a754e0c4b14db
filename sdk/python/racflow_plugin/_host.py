"""What racflow shares with stages that call services: limits, a budget, a response cache, profiles of models."""
from __future__ import annotations

import hashlib
import json
import queue
import threading
import typing

from . import _wire
from ._context import Context
from ._errors import Invalid, StageError, of_failure

MOST_CACHED = 16 << 20  # bytes of a value


def key_of(*parts: str) -> bytes:
    """A key of all that a cached value depends on, never of a secret. Other lists of parts make other keys."""
    hashed = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "replace")
        hashed.update(len(raw).to_bytes(8, "little") + raw)
    return hashed.digest()


class Call:
    """A call that may be sent. Its result tells racflow how it ended; set it before the with block ends."""

    def __init__(self) -> None:
        self._result = None

    def result(self, status: str = "ok", *, input_tokens: int = 0, output_tokens: int = 0, cached_tokens: int = 0,
               retry_after: float = 0.0, reason: str = "", lost: bool = False) -> None:
        """How the call ended.

        status is "ok", "busy" (the service asks for fewer calls: 429, or 503 with a time to wait, in retry_after
        seconds), "down" (it could not be reached, or failed: 5xx), "left" (the stage gave up first), "refused"
        (the service refuses this request) or "denied" (it refuses this caller: a wrong key, an unknown model). reason is
        for people, without a secret. lost: it was sent and got no whole reply.
        """
        self._result = _wire.Result(status="STATUS_" + status.upper(), retry_after_ms=int(retry_after * 1000 + 0.999), input_tokens=input_tokens,
                                    output_tokens=output_tokens, cached_tokens=cached_tokens, reason=reason, lost=lost)


class _Acquired:
    """The stream of a call, from the moment at which it is acquired to its result."""

    def __init__(self, host: "Host", call, context: Context | None):
        self._host, self._call, self._context = host, call, context
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self._given, self._lock, self._ended = Call(), threading.Lock(), False

    def __enter__(self) -> Call:
        if self._host._stubs is None:
            return self._given
        self._requests.put(_wire.AcquireRequest(call=self._call))
        self._replies = self._host._stubs["Acquire"](iter(self._requests.get, None), metadata=self._host._token)
        withdraw = lambda: None  # noqa: E731
        if self._context is not None:  # it may be acquired at this very moment, and is withdrawn by a result
            withdraw = self._context.when_over(lambda: self._end(_wire.Result(status="STATUS_LEFT")))
        try:
            for reply in self._replies:
                if self._context is not None:
                    self._context.check()
                if reply.HasField("failure"):
                    raise of_failure(reply.failure)
                return self._given
        except BaseException:
            self._end(_wire.Result(status="STATUS_LEFT"))
            raise
        finally:
            withdraw()
        if self._context is not None:
            self._context.check()
        raise StageError("racflow ended the wait for a call without a word")

    def _end(self, result) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
        if result is not None:
            self._requests.put(_wire.AcquireRequest(result=result))
        self._requests.put(None)

    def __exit__(self, kind, error, trace) -> None:
        if self._host._stubs is None:
            return
        result = self._given._result
        if result is None:  # an exception without a result: nobody knows what became of the call
            result = _wire.Result(status="STATUS_OK") if error is None else _wire.Result(status="STATUS_LEFT", lost=True)
        self._end(result)
        try:
            for _ in self._replies:  # its end: racflow has counted the result
                pass
        except Exception:  # racflow is gone
            pass


class Host:
    """What racflow shares with a stage. Its methods may be called by several threads at once.

    Where racflow shares nothing, as in a test, it caches nothing and limits nothing.
    """

    def __init__(self, address=None):
        self._stubs: dict[str, typing.Callable] | None = None
        self._channel = None
        if address is None:
            return
        import grpc
        options = [("grpc.max_receive_message_length", _wire.MOST_BYTES), ("grpc.max_send_message_length", _wire.MOST_BYTES),
                   ("grpc.ssl_target_name_override", "localhost"), ("grpc.enable_http_proxy", 0)]
        if address.certificate_pem:
            credentials = grpc.ssl_channel_credentials(address.authority_pem.encode(), address.key_pem.encode(), address.certificate_pem.encode())
            self._channel = grpc.secure_channel(address.address, credentials, options)
        else:  # an engine in the same process, as in tests
            self._channel = grpc.insecure_channel(address.address, options)
        self._token = (("racflow-token", address.token),)
        self._stubs = {}
        for name, path, request, reply in _wire.methods("Host"):
            kind = self._channel.stream_stream if name == "Acquire" else self._channel.unary_unary
            self._stubs[name] = kind(path, request_serializer=request.SerializeToString, response_deserializer=reply.FromString)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def _ask(self, name: str, request, context: Context | None):
        call = self._stubs[name].future(request, metadata=self._token, timeout=context.remaining() if context is not None else None)
        withdraw = context.when_over(call.cancel) if context is not None else lambda: None
        try:
            reply = call.result()
        except BaseException:
            if context is not None:
                context.check()
            raise
        finally:
            withdraw()
        if reply.HasField("failure"):
            raise of_failure(reply.failure)
        return reply

    def cache_get(self, keys: typing.Sequence[bytes], context: Context | None = None) -> list[bytes | None]:
        """What cache_put was given under each key, by this run or an earlier one; None where there is nothing."""
        if self._stubs is None or not keys:
            return [None] * len(keys)
        values = self._ask("CacheGet", _wire.CacheGetRequest(keys=keys), context).values
        if len(values) != len(keys):
            raise StageError(f"racflow gave {len(values)} cached values for {len(keys)} keys")
        return [each.value if each.known else None for each in values]

    def cache_put(self, key: bytes, value: bytes, context: Context | None = None) -> None:
        """Stores a value of at most 16 MiB. When it has returned, the value survives the end of every process."""
        if len(value) > MOST_CACHED:
            raise Invalid(f"a value of {len(value) >> 20} MiB, more than the {MOST_CACHED >> 20} that are cached")
        if self._stubs is not None:
            self._ask("CachePut", _wire.CachePutRequest(key=key, value=value), context)

    def profile(self, endpoint: str, model: str, context: Context | None = None) -> dict | None:
        """What is known of a model behind an endpoint; None: nothing."""
        if self._stubs is None:
            return None
        raw = self._ask("ProfileGet", _wire.ProfileGetRequest(endpoint=endpoint, model=model), context).profile_json
        return json.loads(raw) if raw else None

    def keep_profile(self, endpoint: str, model: str, profile: dict, context: Context | None = None) -> None:
        """Keeps what was found out about a model, without a secret, in a file that people can read and edit."""
        if self._stubs is not None:
            self._ask("ProfilePut", _wire.ProfilePutRequest(endpoint=endpoint, model=model, profile_json=json.dumps(profile).encode()), context)

    def acquire(self, endpoint: str, context: Context | None = None, *, tokens: int = 0, most_input_tokens: int = 0, most_output_tokens: int = 0,
                batch: bool = False, alternative: bool = False) -> typing.ContextManager[Call]:
        """Waits until a call to a service may be sent; send it in the with block::

            with host.acquire("https://api.example.com/v1", context, tokens=900) as call:
                answer = post(...)
                call.result("ok", input_tokens=..., output_tokens=...)

        endpoint is the service's address, without a secret. tokens is what the call will take, roughly. The most that it
        can take is what a budget sets aside. batch: it goes to where answers come later and cost less. alternative:
        the stage asks another service where this one does not serve it, and waits for this one neither when it is down nor
        when it wants a pause. An exception means that the call must not be sent.
        """
        call = _wire.Call(endpoint=endpoint, tokens=tokens, most_input_tokens=most_input_tokens, most_output_tokens=most_output_tokens,
                          batch=batch, alternative=alternative)
        return _Acquired(self, call, context)
