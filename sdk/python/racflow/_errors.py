"""What can go wrong."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Error(Exception):
    """The base of all errors of this package: racflow is missing, ended, or refused a request."""


@dataclass(frozen=True)
class Diagnostic:
    """A mistake in a pipeline file. ``line`` and ``column`` count from 1; they are 0 where it has no place in a file."""

    severity: str
    """``error`` or ``warning``."""
    summary: str
    detail: str
    filename: str = ""
    line: int = 0
    column: int = 0

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Diagnostic:
        """Reads a diagnostic as ``racflow validate --json`` prints it."""
        place = json.get("range") or {}
        start = place.get("start") or {}
        return cls(json["severity"], json["summary"], json.get("detail", ""), place.get("filename", ""), start.get("line", 0), start.get("column", 0))

    def __str__(self) -> str:
        place = f"{self.filename}:{self.line}:{self.column}: " if self.filename else ""
        return f"{place}{self.summary}: {self.detail}"


class PipelineError(Error):
    """A pipeline cannot start, or a command about it failed.

    ``diagnostics`` are the mistakes in the file. Where there are none, the message is what racflow wrote.
    """

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message, diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return str(self.args[0])


class ItemError(Error):
    """An item has no answer. ``stage`` is the one that failed, such as ``sample.llm``; None: the item itself is invalid."""

    def __init__(self, message: str, stage: str | None = None) -> None:
        super().__init__(message, stage)
        self.stage = stage

    def __str__(self) -> str:
        return f"{self.stage}: {self.args[0]}" if self.stage else str(self.args[0])
