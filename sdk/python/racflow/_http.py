"""HTTP/1.1 without input or output, so that threads and asyncio share it. It reads what racflow's own server writes."""
from __future__ import annotations

import json
from typing import Any

from ._errors import Error, ItemError

LINES = "application/x-ndjson"
LAST = b"0\r\n\r\n"  # ends a body of chunks


def head(path: str, kind: str, length: int | None = None, accept: str = "*/*") -> bytes:
    """Returns the head of a POST. Without a length the body comes in chunks."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nAccept: {accept}\r\n{size}\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    """Returns a part of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Reply:
    """A response that is being read."""

    def __init__(self) -> None:
        self.status = 0
        self.complete = False
        self.reusable = True  # the connection, once the response is complete
        self._raw = bytearray()  # not yet decoded
        self._line = bytearray()  # the beginning of a line of the body
        self._left: int | None = None  # bytes of the body or of the chunk; None: the head, or the size of a chunk, comes next
        self._chunked = False

    def feed(self, data: bytes) -> list[bytes]:
        """Takes what was received; nothing: the connection has ended. Returns the lines of the body that it completes."""
        if not data:
            raise ConnectionError("the connection ended before the answer was complete")
        self._raw += data
        while not self.complete and self._step():
            pass
        *lines, rest = self._line.split(b"\n")
        if self.complete and rest:
            lines, rest = [*lines, rest], bytearray()
        self._line = rest
        return [bytes(line) for line in lines]

    def _step(self) -> bool:
        """Decodes the next part. Returns False if more of it has to be received."""
        if self.status == 0:
            end = self._raw.find(b"\r\n\r\n")
            return end >= 0 and self._head(end)
        if self._left is None:
            end = self._raw.find(b"\r\n")
            if end < 0:
                return False
            size = int(bytes(self._raw[:end]).split(b";")[0], 16)
            if size == 0:
                self.complete = len(self._raw) >= end + 4
                return self.complete
            self._left = size + 2
            del self._raw[:end + 2]
        if not self._chunked:
            part = self._raw[:self._left]
        elif len(self._raw) >= self._left:
            part = self._raw[:self._left - 2]
        else:
            return False
        del self._raw[:self._left]
        self._line += part
        self._left = None if self._chunked else self._left - len(part)
        self.complete = self._left == 0
        return bool(self._raw)

    def _head(self, end: int) -> bool:
        status, *fields = bytes(self._raw[:end]).decode("latin-1").split("\r\n")
        del self._raw[:end + 4]
        code = int(status.split(" ")[1])
        if code < 200:
            return True  # the final response follows
        self.status = code
        headers = {name.strip().lower(): value.strip().lower() for name, _, value in (field.partition(":") for field in fields)}
        self._chunked = headers.get("transfer-encoding") == "chunked"
        self.reusable = headers.get("connection") != "close"
        self._left = None if self._chunked else int(headers.get("content-length", "0"))
        self.complete = self._left == 0
        return not self.complete


def problem(body: bytes | str, status: int = 0) -> Error:
    """Returns the error that a problem (RFC 9457) describes, or one in the form of ``/v1/systemone`` with that status."""
    described: dict[str, Any] = json.loads(body)
    detail = described.get("detail") or described.get("title")
    if isinstance(detail, list):
        detail = "; ".join(".".join(map(str, one["loc"][1:])) + ": " + one["msg"] for one in detail)
    elif isinstance(detail, dict):
        detail = detail["message"]
    message = "; ".join([str(detail), *(str(e["message"]) for e in described.get("errors") or ())])
    return Error(message) if described.get("status", status) in (404, 429, 503) else ItemError(message, described.get("stage"))
