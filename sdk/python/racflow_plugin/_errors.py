"""What goes wrong, and what racflow may do about it.

A stage raises one of these to fail a whole call, or returns one in the place of a row's result to
fail that row alone. Any other exception counts as an error of the stage itself.
"""
from __future__ import annotations

from . import _wire

_MOST_TEXT = 16 << 10  # racflow cuts what is longer


class StageError(Exception):
    """An error of the stage itself. Its text should say what to do next."""

    _code = "CODE_INTERNAL"
    retry_after = 0.0


class Invalid(StageError):
    """The same input will fail again: it is not repeated."""

    _code = "CODE_INVALID"


class Transient(StageError):
    """Another try may succeed, not before retry_after seconds have passed."""

    _code = "CODE_TRANSIENT"

    def __init__(self, message: str, retry_after: float = 0.0):
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(StageError):
    """A service that the stage needs is down: not worth another try now."""

    _code = "CODE_UNAVAILABLE"


class Stopped(StageError):
    """The run has to end: its budget is spent, or its service stays down."""

    _code = "CODE_STOPPED"


class Refused(StageError):
    """A service will not work on this row: a content filter, a text that is too long."""

    _code = "CODE_REFUSED"


class Cancelled(StageError):
    """Nobody waits for the call any more."""

    _code = "CODE_CANCELLED"


class _Deadline(Cancelled):
    """The time of the call is over."""

    _code = "CODE_DEADLINE"


class ArgumentError(StageError, ValueError):
    """An argument of the stage is wrong.

    path leads from the argument to the element: keys of maps and indices of lists. Raise several
    at once by giving them as others of the first one.
    """

    _code = "CODE_INVALID"

    def __init__(self, argument: str, message: str, *path: str | int, others: "tuple[ArgumentError, ...] | list[ArgumentError]" = ()):
        super().__init__(message)
        self.argument, self.path, self.others = argument, [str(step) for step in path], list(others)

    def __str__(self) -> str:
        return f"{self.argument}: {self.args[0]}" if self.argument else str(self.args[0])

    def _all(self) -> "list[ArgumentError]":
        return [self] + [each for other in self.others for each in other._all()]


def argument_errors(error: BaseException) -> list:
    """The messages that answer Configure or Validate with an error."""
    if isinstance(error, ArgumentError):
        return [_wire.ArgumentError(argument=e.argument, message=valid(str(e.args[0])), path=[valid(p) for p in e.path]) for e in error._all()]
    return [_wire.ArgumentError(message=text_of(error))]


def failure(error: BaseException):
    """The message of an error."""
    code, after = "CODE_INTERNAL", 0.0
    if isinstance(error, StageError):
        code, after = error._code, error.retry_after
    return _wire.Failure(code=code, message=text_of(error), retry_after_ms=min(max(int(after * 1000 + 0.999), 0), (1 << 32) - 1))


def of_failure(message) -> StageError:
    """The exception of a failure that racflow sent."""
    name = _wire.Code.Name(message.code) if message.code in _wire.Code.values() else "CODE_INTERNAL"
    for cls in (Invalid, Transient, Unavailable, Stopped, Refused, Cancelled, _Deadline):
        if cls._code == name:
            error = cls(message.message)
            error.retry_after = message.retry_after_ms / 1000
            return error
    return StageError(message.message)


def text_of(error: BaseException) -> str:
    """What is said of an exception: its own text, and its type where that is not a StageError."""
    text = str(error)
    if not isinstance(error, StageError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return valid(text)[:_MOST_TEXT]


def valid(text: str) -> str:
    """The text with U+FFFD in the place of surrogates that stand alone, which no message carries."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
