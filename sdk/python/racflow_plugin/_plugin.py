"""What a plugin is: a name, a version, and stages that are classes."""
from __future__ import annotations

import typing

from . import _arguments, _process
from ._stage import Stage, Stages

Class = typing.TypeVar("Class", bound=type)


class Plugin(Stages):
    """A program that offers stages. Its methods chunk, enrich, embed, store, rerank, prompt, sample and elect each take
    the name that `use` says in a file, and decorate a class that is a stage of that kind."""

    def _add(self, kind: str, name: str, *, doc: str | None = None, reads: typing.Sequence[str] = (), network: bool = False, batch: int = 0,
             example: str = "", revision: str = "", fit_reads: typing.Sequence[str] = (), pends: bool | str = False,
             filters: bool = False, attaches: str = "") -> typing.Callable[[Class], Class]:
        def decorate(cls: Class) -> Class:
            cls = _arguments.prepare(cls)
            self.stages.append(Stage(kind, name, cls, doc=doc, reads=reads, network=network, batch=batch, example=example, revision=revision,
                                     fit_reads=fit_reads, pends=pends, filters=filters, attaches=attaches))
            return cls
        return decorate

    def chunk(self, name: str, **options) -> typing.Callable[[Class], Class]:
        """A stage that cuts documents: chunk(self, documents) returns for each the Chunks of its text."""
        return self._add("chunk", name, **options)

    def enrich(self, name: str, **options) -> typing.Callable[[Class], Class]:
        """A stage that adds to passages: enrich(self, passages) returns for each a line of context, an Addition, or None."""
        return self._add("enrich", name, **options)

    def embed(self, name: str, **options) -> typing.Callable[[Class], Class]:
        """A stage that embeds: embed(self, texts) returns vectors of norm 1 and of the length of its attribute dimension."""
        return self._add("embed", name, **options)

    def store(self, name: str, **options) -> typing.Callable[[Class], Class]:
        """A stage that stores and searches entries: see DenseStore."""
        return self._add("store", name, **options)

    def rerank(self, name: str, **options) -> typing.Callable[[Class], Class]:
        """A stage that orders candidates: rerank(self, rows) returns for each a score per candidate, or a list of Ranked."""
        return self._add("rerank", name, **options)

    def prompt(self, name: str, **options) -> typing.Callable[[Class], Class]:
        """A stage that writes prompts: prompt(self, rows) returns for each a text, a Prompt, or a list of those."""
        return self._add("prompt", name, **options)

    def sample(self, name: str, **options) -> typing.Callable[[Class], Class]:
        """A voter: sample(self, rows) returns for each a label, weights by label, a Sample, None, or a list of those."""
        return self._add("sample", name, **options)

    def elect(self, name: str, **options) -> typing.Callable[[Class], Class]:
        """An election: elect(self, rows) returns for each a Verdict or None."""
        return self._add("elect", name, **options)

    def serve(self) -> None:
        """Serves the stages until racflow lets go of the process. It is the last line of a plugin."""
        _process.serve(self)
