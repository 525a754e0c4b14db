"""Batches of Ray Data and Spark: a pipeline as the function that answers them."""
from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Iterator
from typing import Any

from . import _frames
from ._errors import Error, ItemError, PipelineError
from ._pipeline import Pipeline


class Predictor:
    """Answers batches of rows: the class for ``map_batches`` of Ray Data, the function for ``mapInPandas`` of Spark.

    ::

        rows.map_batches(racflow.Predictor, fn_constructor_args=["pipeline.hcl"], batch_format="pyarrow")  # Ray Data

        predictor = racflow.Predictor("pipeline.hcl")                                                      # Spark
        rows.mapInPandas(predictor.map, predictor.schema(rows.schema))

    A batch keeps its rows, their order and their columns, and gets columns with the answers. A row that fails has an
    error, and the others are answered. Each actor of Ray, and each Python worker of Spark, has a process of racflow: it
    starts at the first batch, stays warm for the next ones, and ends with the actor or worker, also when that is killed.

    Args:
        file: the pipeline file; None: ``pipeline.hcl`` in the working directory of the actor or worker.
        text, id: the columns with texts and ids.
        columns: the columns to add, some of answer, confidence, flagged, error, votes and labels.
        prefix: what the names of the added columns begin with, such as ``intent_``.
        arguments: those of Pipeline. Unlike there, watch is False if it is not given, so that the knowledge stays the same.
    """

    def __init__(
        self, file: str | os.PathLike[str] | None = None, *, text: str = "text", id: str | None = None,
        columns: Collection[str] = ("answer", "confidence", "flagged", "error"), prefix: str = "", **arguments: Any,
    ) -> None:
        if isinstance(columns, str) or not set(columns) <= _TYPES.keys():
            raise ValueError(f"columns is {columns!r}: it lists some of {', '.join(_TYPES)}")
        self._text, self._id, self._added = text, id, {name: prefix + name for name in columns}
        self._pipeline = Pipeline(file, **{"watch": False, **arguments})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pipeline = _warm(self._pipeline)

    def __call__(self, batch: Any) -> Any:
        """Answers a batch: a pandas DataFrame, a pyarrow Table or RecordBatch, or a mapping from names to NumPy arrays.

        Returns a batch of the same kind. Raises KeyError or ValueError if the batch's columns do not fit, PipelineError if
        the pipeline cannot start, and Error if the process of racflow ended twice.
        """
        kind = _frames.kind(batch)
        if kind not in ("pandas", "pyarrow", "numpy") or not _frames.tabular(batch):
            raise TypeError(f"a batch is a pandas DataFrame, a pyarrow Table or a mapping from names to arrays, not {type(batch).__name__}")
        self._check(_frames.names(batch))
        items = list(_frames.items(batch, text=self._text, id=self._id))
        try:
            results = self._pipeline.run(items)
        except (PipelineError, ItemError):
            raise
        except Error:  # the process was killed, perhaps for its memory: a new one answers the batch
            results = self._pipeline.run(items)
        answers = _frames.framed(batch, results, self._added)
        if kind == "pyarrow":
            for name, column in self._added.items():
                batch = batch.append_column(column, answers[name].combine_chunks())
            return batch
        if kind == "numpy":
            return {**batch, **{column: answers[name] for name, column in self._added.items()}}
        # "string" is the type of a column also where all of it is missing, from which Ray would infer none.
        answers = answers.astype({name: "string" for name in ("answer", "error") if name in self._added})
        return batch.assign(**{column: answers[name].array for name, column in self._added.items()})

    def map(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Answers one batch after the other: for ``mapInPandas`` and ``mapInArrow`` of Spark."""
        return map(self, batches)

    def schema(self, of: Any) -> Any:
        """Returns the schema of answered rows, for Spark. ``of`` is the StructType of the rows. Raises KeyError or ValueError as a batch does."""
        self._check(of.names)
        described = of.jsonValue()
        described["fields"] += [_field(column, _TYPES[name]) for name, column in self._added.items()]
        return of.fromJson(described)

    def _check(self, columns: Collection[str]) -> None:
        _frames.check(columns, self._text, self._id)
        if taken := [name for name in self._added.values() if name in columns]:
            raise ValueError(f"there is a column {', '.join(taken)} already: rename it, or give the Predictor a prefix")


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _array(**fields: str) -> dict[str, Any]:
    return {"type": "array", "elementType": {"type": "struct", "fields": [_field(*one) for one in fields.items()]}, "containsNull": True}


_TYPES = {  # of columns, as Spark writes a schema in JSON
    "answer": "string", "confidence": "double", "flagged": "boolean", "error": "string",
    "votes": _array(voter="string", answer="string", weight="double", accepted="boolean"),
    "labels": _array(label="string", confidence="double"),
}

_pipelines: weakref.WeakValueDictionary[str, Pipeline] = weakref.WeakValueDictionary()
_last: Pipeline | None = None


def _warm(pipeline: Pipeline) -> Pipeline:
    """Returns the pipeline with the same arguments that this process has already, and keeps it.

    A Python worker of Spark gets the function anew with each task. It keeps the last pipeline from task to task.
    """
    global _last
    _last = _pipelines.setdefault(repr((os.getcwd(), pipeline.__getstate__())), pipeline)
    return _last
