"""Columns of messages: how they are read and written."""
from __future__ import annotations

import itertools
import json
import sys

from ._errors import Invalid, StageError, valid


def numpy():
    """The module numpy. What needs it says so when it is missing."""
    try:
        import numpy
    except ImportError as error:
        raise StageError(f"numpy could not be imported, which arrays of columns need: {error}; install it beside the plugin") from error
    return numpy


def is_array(value) -> bool:
    return "numpy" in sys.modules and hasattr(value, "__array__")


def column(name: str, values, n: int, missing) -> list:
    """The values of a column as a list; missing ones are those of a column that is absent."""
    if not values:
        return [missing] * n
    if len(values) != n:
        raise Invalid(f"column {name} has {len(values)} values for {n} rows")
    return list(values)


def offsets(name: str, values, n: int, elements: int) -> list[int]:
    """The offsets of a column of lists."""
    values = list(values)
    if not values and not elements:
        return [0] * (n + 1)
    if len(values) != n + 1 or values[0] != 0 or values[-1] != elements or any(a > b for a, b in itertools.pairwise(values)):
        raise Invalid(f"column {name}: {len(values)} offsets do not divide {elements} elements among {n} rows")
    return values


def metadata_of(raw: bytes) -> dict:
    return json.loads(raw) if raw else {}


def metadata(value: dict) -> bytes:
    """Metadata as it travels: strings, finite numbers and booleans by name."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace") if value else b""


def some(values: list) -> list:
    """A column, or nothing where all values are empty or zero."""
    return values if any(values) else []


class Names:
    """Numbers the distinct strings of a column."""

    def __init__(self):
        self.numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        at = self.numbers.get(name)
        if at is None:
            at = self.numbers[name] = len(self.numbers)
        return at

    def all(self) -> list[str]:
        return [valid(name) for name in self.numbers]


def vectors_of(message) -> "memoryview | None":
    """All vectors of rows, one after the other; None: there are none."""
    if not message.vectors:
        return None
    if len(message.vectors) != 4 * message.dimension * message.n:
        raise Invalid(f"column vectors has {len(message.vectors)} bytes for {message.n} rows of dimension {message.dimension}")
    return memoryview(message.vectors).cast("f")


def characters(text: str, places: list[int]) -> dict[int, int]:
    """Numbers of bytes of a text as numbers of its characters."""
    if text.isascii():
        return {place: place for place in places}
    raw, found, before, count = text.encode(), {}, 0, 0
    for place in sorted(set(places)):
        try:
            count += len(raw[before:place].decode())
        except UnicodeDecodeError:
            raise Invalid(f"byte {place} of a text cuts a character in two") from None
        found[place], before = count, place
    return found


def utf8(text: str, places: list[int]) -> dict[int, int]:
    """Numbers of characters of a text as numbers of its bytes."""
    if text.isascii():
        return {place: place for place in places}
    found, before, count = {}, 0, 0
    for place in sorted(set(places)):
        count += len(text[before:place].encode())
        found[place], before = count, place
    return found
