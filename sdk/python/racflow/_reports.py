"""What commands report: evaluations, plans, promises."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._results import percent, table

if TYPE_CHECKING:
    from ._pipeline import Pipeline


class Report:
    """What a command of racflow reports. ``json`` is all of it; the properties are what is asked for most."""

    def __init__(self, json: Mapping[str, Any]) -> None:
        self.json = json

    def _facts(self) -> dict[str, str | None]:
        raise NotImplementedError

    def _rows(self) -> list[tuple[str, ...]]:
        return [(name, value) for name, value in self._facts().items() if value is not None]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(': '.join(row) for row in self._rows())})"

    def _repr_html_(self) -> str:
        return table(self._rows())


class Evaluation(Report):
    """How good a pipeline is on items whose labels or gold passages are known."""

    @property
    def items(self) -> int:
        """The number of items."""
        return int(self.json["items"])

    @property
    def accuracy(self) -> float | None:
        """The share of right answers; None: no item has a label."""
        return self.json.get("accuracy") if self.json.get("scored") else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the accuracy."""
        interval = self.json.get("accuracy_interval")
        return (interval["low"], interval["high"]) if interval else None

    @property
    def voters(self) -> dict[str, float]:
        """The accuracy of each voter alone."""
        return {voter["name"]: voter["accuracy"] for voter in self.json.get("voters") or ()}

    def _facts(self) -> dict[str, str | None]:
        within = "" if self.interval is None else f" [{percent(self.interval[0])}, {percent(self.interval[1])}]"
        facts = {name: str(self.json[name]) if self.json.get(name) else None for name in ("items", "failed", "undecided", "flagged")}
        return {"accuracy": None if self.accuracy is None else f"{percent(self.accuracy)}{within}", **facts}


class Plan(Report):
    """What a run would build and call, and what that would cost."""

    @property
    def items(self) -> int | None:
        """The number of items; None: the pipeline has no input."""
        return self.json.get("items")

    @property
    def cost(self) -> float:
        """What calls of services are expected to cost, by the prices in use."""
        return float(sum((stage.get("expected") or {}).get("cost", 0) for stage in self.json.get("stages") or ()))

    @property
    def requests(self) -> int:
        """The calls of services that are expected."""
        return int(sum((stage.get("expected") or {}).get("requests", 0) for stage in self.json.get("stages") or ()))

    def _facts(self) -> dict[str, str | None]:
        embed = sum(one.get("to_embed", 0) for one in self.json.get("knowledge") or ())
        items = None if self.items is None else str(self.items)
        return {"items": items, "entries to embed": str(embed), "requests": str(self.requests), "cost": f"{self.cost:.4f}"}


class Promise(Report):
    """Values of variables that ``Pipeline.tune`` found, and the accuracy that they promise."""

    def __init__(self, json: Mapping[str, Any], pipeline: Pipeline) -> None:
        super().__init__(json)
        self._pipeline = pipeline

    @property
    def variables(self) -> str:
        """The values in HCL, with comments on what they were found on: ``save`` writes them for ``var_files``."""
        return str(self.json["variables"])

    @property
    def accuracy(self) -> float | None:
        """At least this share of the answers without a flag is right; None: nothing was promised."""
        return (self.json.get("promise") or {}).get("accuracy")

    @property
    def answered(self) -> float | None:
        """The share of the rows that the promise was found on that are answered without a flag."""
        promise = self.json.get("promise") or {}
        return promise["answered"] / promise["rows"] if promise.get("rows") else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the variables to a file, which ``var_files`` and ``-var-file`` take."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.variables)

    def apply(self) -> Pipeline:
        """Returns a new pipeline with the variables. It keeps them in its state folder."""
        return self._pipeline._tuned(self)

    def _facts(self) -> dict[str, str | None]:
        promise = self.json.get("promise") or {}
        text = f"at least {percent(promise['accuracy'])} right, with {percent(promise['confidence'])} confidence" if promise else "none"
        return {"promise": text, "answered without a flag": percent(self.answered), "rows": str(promise["rows"]) if promise else None}
