"""A call, as its stage sees it."""
from __future__ import annotations

import threading
import time
import typing

from ._errors import Cancelled, _Deadline


class Context:
    """Says whether anybody still waits for a call, and how much time it has left."""

    def __init__(self, call=None):
        self._call, self._ended, self._lock = call, False, threading.Lock()
        self._then: list[typing.Callable[[], None]] = []
        left = call.time_remaining() if call is not None else None
        self._end = None if left is None else time.monotonic() + left
        if call is not None and not call.add_callback(self._over):
            self._ended = True

    def _over(self) -> None:
        with self._lock:
            self._ended, then = True, self._then
            self._then = []
        for each in then:
            each()

    @property
    def cancelled(self) -> bool:
        """Nobody reads the reply any more: the call was cancelled, or its time is over."""
        return self._ended or self._end is not None and time.monotonic() >= self._end

    def check(self) -> None:
        """Raises Cancelled where nobody waits for the call. Long work asks every now and then."""
        if self._end is not None and time.monotonic() >= self._end:
            raise _Deadline("the time of the call is over")
        if self._ended:
            raise Cancelled("the call was cancelled")

    def remaining(self) -> float | None:
        """The seconds that are left; None: it has no deadline. A service that is called takes it as its timeout."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def wait(self, seconds: float) -> None:
        """Waits, at most until nobody waits for the call: then it raises Cancelled."""
        over = threading.Event()
        withdraw = self.when_over(over.set)
        left = self.remaining()
        over.wait(seconds if left is None else min(seconds, left))
        withdraw()
        self.check()

    def when_over(self, then: typing.Callable[[], None]) -> typing.Callable[[], None]:
        """Calls then, in another thread, when the call has ended or nobody waits for it any more. What it returns
        withdraws that."""
        with self._lock:
            if not self._ended:
                self._then.append(then)
                return lambda: self._withdraw(then)
        then()
        return lambda: None

    def _withdraw(self, then: typing.Callable[[], None]) -> None:
        with self._lock:
            if then in self._then:
                self._then.remove(then)
