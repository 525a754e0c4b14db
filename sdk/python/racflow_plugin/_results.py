"""Results of a batch, and the rows of it that failed alone.

In the place of a row's result there may be an exception: that row then fails alone.
"""
from __future__ import annotations

import typing

from . import _wire
from ._errors import StageError, failure


def each(function: typing.Callable, rows: typing.Iterable, context=None) -> list:
    """Calls function with each row. A row for which it raises an exception fails alone.

    With the call's context, the work ends where nobody waits for it.
    """
    results = []
    for row in rows:
        if context is not None:
            context.check()
        try:
            results.append(function(row))
        except Exception as error:
            results.append(error)
    return results


class Failed(dict):
    """The rows that failed alone, by their numbers."""

    def take(self, results: list) -> list:
        """The results, with None in the place of exceptions."""
        for i, result in enumerate(results):
            if isinstance(result, Exception):
                self[i] = result
        return [None if i in self else result for i, result in enumerate(results)] if self else results

    def encode(self) -> list:
        return [_wire.RowError(row=i, failure=failure(self[i])) for i in sorted(self)]


def listed(results, n: int) -> list:
    """The results as a list of n."""
    if results is None or isinstance(results, (str, bytes, dict)):
        raise StageError(f"the stage returned {type(results).__name__} in the place of a list of results")
    results = list(results)
    if len(results) != n:
        raise StageError(f"the stage returned {len(results)} results for {n} rows")
    return results


def per_row(results: list, failed: Failed, convert: typing.Callable, missing) -> list:
    """The converted results; a row that cannot be converted fails alone."""
    out = []
    for i, result in enumerate(failed.take(results)):
        try:
            out.append(missing() if i in failed else convert(result))
        except Exception as error:
            failed[i] = error
            out.append(missing())
    return out
