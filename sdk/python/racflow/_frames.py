"""Data frames: their texts go to a pipeline, and its results become a frame of the same kind."""
from __future__ import annotations

import numbers
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ._results import Result


def kind(data: Any) -> str | None:
    """Returns which library data is a frame or a column of, without importing any; None: it is of none.

    A mapping, from names to columns, is of numpy.
    """
    frames = (("pandas", ("DataFrame", "Series")), ("polars", ("DataFrame", "Series")), ("pyarrow", ("Table", "RecordBatch", "ChunkedArray", "Array")))
    for name, types in frames:
        library = sys.modules.get(name)
        if library is not None and isinstance(data, tuple(getattr(library, one) for one in types)):
            return name
    return "numpy" if isinstance(data, Mapping) else None


def tabular(data: Any) -> bool:
    """Whether data is a frame, and no column."""
    return kind(data) is not None and (hasattr(data, "columns") or isinstance(data, Mapping))


def names(frame: Any) -> list[str]:
    """Returns the names of a frame's columns."""
    return list(frame.schema.names if kind(frame) == "pyarrow" else frame if isinstance(frame, Mapping) else frame.columns)


def check(known: Collection[str], *wanted: str | None) -> None:
    """Raises KeyError if a column is missing."""
    if missing := [name for name in wanted if name is not None and name not in known]:
        raise KeyError(f"no column {', '.join(missing)} among {', '.join(map(str, known))}: text= and label= name the columns")


def items(data: Any, **columns: str | None) -> Iterator[dict[str, Any]]:
    """Returns the items of a frame, a column or an iterable. columns are the names of text, label and id.

    An element is a text or a mapping with text and perhaps id, label and meta. Raises KeyError if a column is missing.
    """
    if not kind(data):
        return map(item, data)
    if not tabular(data):
        return ({"text": plain(text)} for text in values(data))
    check(names(data), *columns.values())
    wanted = {what: name for what, name in columns.items() if name is not None}
    taken = zip(*(values(data[name]) for name in wanted.values()))
    return ({what: plain(value) for what, value in zip(wanted, row)} for row in taken)


def values(column: Any) -> Iterable[Any]:
    """Returns the values of a column, None where they are missing."""
    if hasattr(column, "to_pylist"):
        return column.to_pylist()  # type: ignore[no-any-return]
    if hasattr(column, "to_list"):
        return column.to_list()  # type: ignore[no-any-return]
    if hasattr(column, "tolist"):
        return column.tolist()  # type: ignore[no-any-return]
    return column  # type: ignore[no-any-return]


def item(one: Any) -> dict[str, Any]:
    """Returns an item of a list."""
    if isinstance(one, Mapping):
        return {what: value if what == "meta" else plain(value) for what, value in one.items()}
    return {"text": plain(one)}


def plain(value: Any) -> Any:
    """Returns a value as JSON has it: a number as a text, a missing value as None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, numbers.Number):
        return None if value != value else str(value)
    if isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, "tolist"):  # labels or passages
        return list(value)
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    raise TypeError(f"{value!r} is no text")


def framed(data: Any, results: list[Result], chosen: Collection[str] = ()) -> Any:
    """Returns results as a frame of data's kind, with its index. Without a choice of columns it has all."""
    columns: dict[str, list[Any]] = {
        "answer": [one.answer for one in results],
        "confidence": [one.confidence for one in results],
        "flagged": [one.flagged for one in results],
        "votes": [one.votes for one in results],
        "error": [None if one.error is None else str(one.error) for one in results],
    }
    if "labels" in chosen or any(one.json.get("labels") for one in results):
        columns["labels"] = [one.json.get("labels") or [] for one in results]
    columns = {column: columns[column] for column in chosen or columns}
    name = kind(data) or ""
    library: Any = sys.modules[name]
    if name == "pandas":
        kinds = {"confidence": float, "flagged": bool, "votes": object, "labels": object}
        return library.DataFrame(columns, index=data.index).astype({column: kinds[column] for column in kinds.keys() & columns.keys()})
    if name == "numpy":
        empty = {"confidence": "float64", "flagged": "bool"}
        return {column: _array(library.empty(len(cells), empty.get(column, "object")), cells) for column, cells in columns.items()}
    if name == "polars":
        text, number, flag, many, record = library.String, library.Float64, library.Boolean, library.List, library.Struct
    else:
        text, number, flag, many, record = library.string(), library.float64(), library.bool_(), library.list_, library.struct
    types = {
        "answer": text, "confidence": number, "flagged": flag, "error": text,
        "votes": many(record({"voter": text, "answer": text, "weight": number, "accepted": flag})),
        "labels": many(record({"label": text, "confidence": number})),
    }
    if name == "polars":
        return library.DataFrame(columns, schema={column: types[column] for column in columns})
    return library.table({column: library.array(cells, types[column]) for column, cells in columns.items()})


def _array(empty: Any, cells: list[Any]) -> Any:
    """Fills an array of NumPy, in which a list is one cell."""
    for i, cell in enumerate(cells):
        empty[i] = cell
    return empty
