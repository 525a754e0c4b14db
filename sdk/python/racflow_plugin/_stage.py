"""What a stage is, and how it is opened and called."""
from __future__ import annotations

import dataclasses
import inspect
import logging
import pathlib
import typing

from . import _arguments, _wire
from ._errors import StageError, valid
from ._host import Host

COLUMNS = ("text", "meta", "vector", "candidates", "candidate_texts", "prototypes", "random", "labels", "prompts", "samples")
_ALWAYS = {"rerank": ("text", "candidates"), "elect": ("samples",)}
_METHODS = {"store": ("open_collection", "put", "delete", "commit", "search", "get", "scan", "list_collections", "drop")}
_LEARN = ("embed", "sample", "rerank", "elect")
_PEND = ("embed", "sample", "enrich")


@dataclasses.dataclass
class Setup:
    """What a stage gets to know in its method open(self, setup), once, before it works."""

    block: str = ""  # the name of its block in the file
    state_dir: pathlib.Path = pathlib.Path()  # a folder of its own that outlives the process, with what fit has written there
    samples: int = 0  # n of a sample block; of a prompt block the most that a stage below it draws
    many: bool = False  # a row has a set of labels: sorted, with "; " between them
    levels: str = ""  # what stands between the levels of a label, a path in a tree; empty: it has no levels
    host: Host = dataclasses.field(default_factory=Host)
    log: logging.Logger = dataclasses.field(default_factory=lambda: logging.getLogger("racflow"))


class Stage:
    """The description of a stage, and the way to open it."""

    def __init__(self, kind: str, name: str, cls: type, *, doc: str | None, reads: typing.Sequence[str], network: bool, batch: int, example: str,
                 revision: str, fit_reads: typing.Sequence[str], pends: bool | str, filters: bool, attaches: str):
        self.kind, self.name, self.cls, self.revision = kind, name, cls, revision
        self.described = _arguments.describe(cls)
        for method in _METHODS.get(kind, (kind,)):
            if not callable(getattr(cls, method, None)):
                raise TypeError(f"{cls.__name__} is a {kind} stage without a method {method}")
        for column in (*reads, *fit_reads):
            if column not in COLUMNS:
                raise TypeError(f"{cls.__name__} reads {column!r}; there are " + ", ".join(COLUMNS))
        self.reads = tuple(dict.fromkeys((*_ALWAYS.get(kind, ()), *reads)))
        self.fits, self.collects = hasattr(cls, "fit"), hasattr(cls, "collect")
        if self.fits and kind not in _LEARN:
            raise TypeError(f"{cls.__name__} has a method fit, and a {kind} stage does not learn")
        if fit_reads and not self.fits:
            raise TypeError(f"{cls.__name__} has fit_reads and no method fit")
        if bool(pends) != self.collects or pends and kind not in _PEND:
            raise TypeError(f"{cls.__name__}: pends goes with a method collect, of the kinds " + ", ".join(_PEND))
        if attaches and (kind != "store" or not callable(getattr(cls, "attach", None))):
            raise TypeError(f"{cls.__name__}: attaches is for a store with a method attach")
        if attaches and attaches not in [each.message.name for each in self.described if each.message.type == _wire.ArgumentType.ARGUMENT_TYPE_STRING]:
            raise TypeError(f"{cls.__name__} attaches what {attaches!r} names, which is no argument of type str")
        if doc is None:
            doc = " ".join((cls.__doc__ or "").split("\n\n")[0].split())
        self.info = _wire.StageInfo(
            kind="KIND_" + kind.upper(), name=name, doc=valid(doc), arguments=[each.message for each in self.described],
            reads=["COLUMN_" + column.upper() for column in self.reads], network=network, preferred_batch=batch, filters=filters,
            example=example, validates=hasattr(cls, "validate"), fits=self.fits, fit_reads=["COLUMN_" + column.upper() for column in fit_reads],
            pends=bool(pends), pends_if=pends if isinstance(pends, str) else "", attaches=attaches)

    def make(self, config: bytes):
        """An instance with its arguments, which its method validate has checked."""
        made = _arguments.build(self.cls, self.described, config)
        if self.info.validates:
            made.validate()
        return made


class Stages:
    """The stages that a plugin offers."""

    def __init__(self, name: str, version: str):
        self.name, self.version = name, version
        self.stages: list[Stage] = []

    def find(self, kind: str, name: str) -> Stage:
        for stage in self.stages:
            if (stage.kind, stage.name) == (kind, name):
                return stage
        raise StageError(f"plugin {self.name} {self.version} has no {kind} stage {name!r}")

    def describe(self):
        return _wire.DescribeReply(name=self.name, version=self.version, stages=[stage.info for stage in self.stages], minor=_wire.MINOR)


def caller(stage, method: str, **extras) -> typing.Callable:
    """A method of a stage, which gets those of the extras that it has parameters for."""
    function = getattr(stage, method)
    wanted = inspect.signature(function).parameters
    extras = {name: value for name, value in extras.items() if name in wanted}
    return (lambda *args: function(*args, **extras)) if extras else function
