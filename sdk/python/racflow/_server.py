"""The process ``racflow serve --child``, and requests to it."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import IO, Any

from . import _http
from ._binary import binary, explain, logged
from ._errors import Error

IDLE = 60  # seconds after which a connection is not used again; the server closes it after 120
AHEAD = 1024  # lines of a batch that are under way; the server works on up to 256, and others wait in buffers
CHUNK = 64 << 10  # bytes
PATIENCE = 0.02  # seconds for which lines are gathered before they are sent
END = 10  # seconds that the process has to end by itself
DYING = 1  # seconds for which a process may be there after its connections have ended

_forked: weakref.WeakSet[Any] = weakref.WeakSet()  # what a forked process does not share with its parent
_beginning = threading.Lock()  # held while a process is started, so that no fork sees half of it


class Server:
    """A process that answers as long as this one holds its standard input open."""

    def __init__(self, flags: list[str], more: list[str], cwd: str) -> None:
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._idle: list[tuple[float, socket.socket]] = []  # with the time of the last answer
        self._stderr: deque[str] = deque(maxlen=20)
        with _beginning:
            try:
                self._process = subprocess.Popen(
                    [binary(), "serve", "--child", *flags, *more], cwd=cwd, start_new_session=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                )
            except OSError as error:
                raise Error(f"racflow cannot be started: {error}") from error
            listener = threading.Thread(target=_listen, args=(self._process.stderr, self._stderr), name="racflow", daemon=True)
            self._end = weakref.finalize(self, _end, self._process, listener, self._sockets, self._idle)
            _forked.add(self)
        listener.start()
        assert self._process.stdout
        try:
            with self._process.stdout as lines:
                line = lines.readline()
            if not line:
                self.close()
                raise explain(flags, "\n".join(self._stderr), cwd)
            ready = json.loads(line)
        except BaseException:
            self.close()
            raise
        self._path: str = ready["socket"]
        self.pipelines: list[str] = ready["pipelines"]

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._end.alive and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process, which leads a session of its own."""
        return self._process.pid

    def close(self) -> None:
        """Ends the process, and with it requests that are under way."""
        self._end()

    def _forget(self) -> None:
        """Lets go of the process of a parent, after a fork."""
        if self._end.detach() and self._process.stdin:
            self._process.stdin.close()
        for one in list(self._sockets):
            one.close()
        self._process.returncode = 0  # it is no child of this process

    def _kept(self) -> socket.socket | None:
        with contextlib.suppress(IndexError):  # another thread may take the last one
            while True:
                used, one = self._idle.pop()
                if time.monotonic() - used < IDLE:
                    return one
                one.close()
        return None

    @contextlib.contextmanager
    def _connected(self, reply: _http.Reply, blocking: bool) -> Iterator[socket.socket]:
        """Lends a connection. It is kept for the next request if the response is complete, and else ends, which cancels the request."""
        one = self._kept()
        if one is None:
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._sockets.add(one)
            with self._watched():
                one.connect(self._path)
        try:
            one.setblocking(blocking)
            yield one
        finally:
            if reply.complete and reply.reusable and self._end.alive:
                self._idle.append((time.monotonic(), one))
            else:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)  # also where a forked process holds it, too
                one.close()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Says why a connection ended."""
        try:
            yield
        except OSError as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(DYING)  # so that whoever asks again sees that it has ended, and starts another
            raise Error("racflow was closed" if not self._end.alive else "racflow ended: " + ("\n".join(self._stderr) or "without a word")) from error

    def ask(self, path: str, body: bytes, accept: str = "*/*") -> list[bytes]:
        """Sends JSON and returns the lines of the response. Raises Error."""
        reply = _http.Reply()
        lines: list[bytes] = []
        with self._connected(reply, blocking=True) as one, self._watched():
            one.sendall(_http.head(path, "application/json", len(body), accept) + body)
            while not reply.complete:
                lines += reply.feed(one.recv(CHUNK))
        return _succeeded(reply, lines)

    async def aask(self, path: str, body: bytes, accept: str = "*/*") -> list[bytes]:
        """Does what ask does."""
        loop, reply = asyncio.get_running_loop(), _http.Reply()
        lines: list[bytes] = []
        with self._connected(reply, blocking=False) as one, self._watched():
            await loop.sock_sendall(one, _http.head(path, "application/json", len(body), accept) + body)
            while not reply.complete:
                lines += reply.feed(await loop.sock_recv(one, CHUNK))
        return _succeeded(reply, lines)

    def stream(self, path: str, lines: Iterator[bytes]) -> Iterator[bytes]:
        """Sends lines, and yields those of the response while it does."""
        reply = _http.Reply()
        out, source = _http.head(path, _http.LINES), gather(lines)
        ended, under_way = False, 0
        refused: list[bytes] = []
        with self._connected(reply, blocking=False) as one, selectors.DefaultSelector() as ready:
            key = ready.register(one, selectors.EVENT_READ)
            while not reply.complete:
                if not out and not ended and under_way < AHEAD:
                    count, data = next(source, (0, b""))
                    ended, under_way, out = not data, under_way + count, _http.chunk(data) if data else _http.LAST
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if out else 0)
                if key.events != wanted:
                    key = ready.modify(one, wanted)
                with self._watched():
                    ((_, events),) = ready.select()
                    if events & selectors.EVENT_WRITE:
                        out = out[one.send(out):]
                    received = reply.feed(one.recv(CHUNK)) if events & selectors.EVENT_READ else []
                under_way -= len(received)
                if reply.status in (0, 200):
                    yield from received
                else:
                    refused, ended, out = refused + received, True, b""
                    reply.reusable = False  # the server has not read all of the request
            _succeeded(reply, refused)

    async def astream(self, path: str, chunks: AsyncIterator[tuple[int, bytes]]) -> AsyncGenerator[bytes, None]:
        """Does what stream does with lines that are gathered already."""
        loop, reply = asyncio.get_running_loop(), _http.Reply()
        under_way, room = 0, asyncio.Event()
        refused: list[bytes] = []

        async def send(one: socket.socket) -> None:
            nonlocal under_way
            try:
                await loop.sock_sendall(one, _http.head(path, _http.LINES))
                async for count, data in chunks:
                    under_way += count
                    await loop.sock_sendall(one, _http.chunk(data))
                    while under_way >= AHEAD:
                        room.clear()
                        await room.wait()
                await loop.sock_sendall(one, _http.LAST)
            except Exception:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)  # the loop below waits for answers to what is never sent
                raise

        with self._connected(reply, blocking=False) as one:
            sending = asyncio.create_task(send(one))
            try:
                while not reply.complete:
                    data = await loop.sock_recv(one, CHUNK)
                    if not data and sending.done():
                        sending.result()  # raises the error of the source
                    with self._watched():
                        received = reply.feed(data)
                    under_way -= len(received)
                    room.set()
                    if reply.status in (0, 200):
                        for line in received:
                            yield line
                    else:
                        refused += received
                        reply.reusable = False
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            _succeeded(reply, refused)


def gather(lines: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Joins lines to chunks with their number of lines. Where lines are slow to come, a chunk has few."""
    while True:
        parts: list[bytes] = []
        size, until = 0, time.monotonic() + PATIENCE
        for line in lines:
            parts.append(line)
            size += len(line)
            if size >= CHUNK or len(parts) >= AHEAD // 4 or time.monotonic() >= until:
                break
        if not parts:
            return
        yield len(parts), b"".join(parts)


def _succeeded(reply: _http.Reply, lines: list[bytes]) -> list[bytes]:
    if reply.status != 200:
        raise _http.problem(b"\n".join(lines), reply.status)
    return lines


def _listen(lines: IO[str], stderr: deque[str]) -> None:
    """Logs what the process writes until it has ended."""
    with lines:
        for line in lines:
            if line := line.rstrip():
                stderr.append(line)
                logged(line)


def _end(
    process: subprocess.Popen[str], listener: threading.Thread, sockets: weakref.WeakSet[socket.socket], idle: list[tuple[float, socket.socket]],
) -> None:
    if process.stdin:
        process.stdin.close()
    for one in list(sockets):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)  # wakes threads that wait for an answer
    while idle:
        idle.pop()[1].close()
    try:
        process.wait(END)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if listener is not threading.current_thread() and listener.is_alive():
        listener.join(END)


def _after_fork() -> None:
    _beginning.release()
    for one in list(_forked):
        one._forget()


os.register_at_fork(before=_beginning.acquire, after_in_parent=_beginning.release, after_in_child=_after_fork)
