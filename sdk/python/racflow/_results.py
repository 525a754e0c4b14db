"""What a pipeline answers to an item."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ._errors import ItemError


class Result:
    """The answer to one item.

    ``json`` is the object of which all properties are parts, as ``racflow run`` writes it. Shares, confidences and
    weights are between 0 and 1.
    """

    __slots__ = ("json", "passages")

    def __init__(self, json: Mapping[str, Any], passages: list[dict[str, Any]] | None = None) -> None:
        self.json = json
        self.passages: list[dict[str, Any]] = passages or json.get("candidates") or []
        """What was found, best first, each with ``id``, ``text``, ``score`` and perhaps ``label`` and ``meta``: of
        ``Pipeline.ask``, and of pipelines without an election."""

    @property
    def id(self) -> str:
        """The item's id; where it came without one, its number, from 1."""
        return str(self.json["id"])

    @property
    def text(self) -> str:
        """The item's text."""
        return str(self.json["text"])

    @property
    def expected(self) -> str | None:
        """The label that came with the item."""
        return self.json.get("expected")

    @property
    def answer(self) -> str | None:
        """The answer; None: there is none, and ``error`` or ``reason`` says why. Several labels are joined by ``; ``;
        where answers are sets of labels, ``[]`` is one that has none."""
        return self.json.get("answer")

    @property
    def confidence(self) -> float | None:
        """The calibrated probability that the answer is right; None: the election estimates none."""
        return self.json.get("confidence")

    @property
    def agreement(self) -> float:
        """The answer's share of the votes."""
        return float(self.json.get("agreement", 0))

    @property
    def flagged(self) -> bool:
        """Whether a person should check the answer, by the file's rule."""
        return bool(self.json.get("flagged"))

    @property
    def reason(self) -> str | None:
        """Why there is no answer although nothing failed, or who decided it."""
        return self.json.get("reason")

    @property
    def labels(self) -> dict[str, float]:
        """Labels with their confidence, the surest first, where the election lists them."""
        return {one["label"]: one["confidence"] for one in self.json.get("labels") or ()}

    @property
    def votes(self) -> list[dict[str, Any]]:
        """The votes, each with ``voter``, ``answer``, ``weight`` and ``accepted``."""
        return self.json.get("votes") or []

    @property
    def citations(self) -> list[dict[str, Any]]:
        """The passages that the answer cites, each with its ``number`` in the answer, its ``id`` and its place."""
        return self.json.get("citations") or []

    @property
    def error(self) -> ItemError | None:
        """Why the item failed."""
        failure = self.json.get("error")
        return ItemError(failure["message"], failure.get("stage")) if failure else None

    def __repr__(self) -> str:
        if self.error:
            return f"Result(id={self.id!r}, error={str(self.error)!r})"
        if self.answer is None and self.passages:
            return f"Result(id={self.id!r}, {len(self.passages)} passages)"
        sure = "" if self.confidence is None else f", confidence={self.confidence:.2f}"
        return f"Result(id={self.id!r}, answer={self.answer!r}{sure}{', flagged' if self.flagged else ''})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.json == other.json and self.passages == other.passages

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        facts = {"text": self.text, "error": self.error, "answer": self.answer, "confidence": percent(self.confidence), "why": self.reason}
        rows = [(name, str(value)) for name, value in facts.items() if value]
        if self.flagged:
            rows.append(("flagged", "a person should check this"))
        parts = [table(rows)]
        if self.votes:
            parts.append(table([(v["voter"], v["answer"], f"{v['weight']:.2f}") for v in self.votes[:20]], ("voter", "vote", "weight")))
        if self.passages:
            parts.append(table([(f"{p['score']:.2f}", p["id"], p["text"][:300]) for p in self.passages[:5]], ("score", "passage", "text")))
        return "".join(parts)


def table(rows: Sequence[tuple[str, ...]], header: tuple[str, ...] = ()) -> str:
    """Returns a table of HTML."""
    lines = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in header)}</tr>"] if header else []
    lines += [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"


def percent(share: float | None) -> str | None:
    """Returns a share as people read it."""
    return None if share is None else f"{100 * share:.1f} %"
