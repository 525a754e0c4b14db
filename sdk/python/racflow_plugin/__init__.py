"""Write racflow stages in Python.

A stage is a class whose annotated fields are its arguments and whose method does the work::

    from racflow_plugin import Plugin, argument

    plugin = Plugin("length", "0.1.0")


    @plugin.sample("bylength", reads=["text"])
    class ByLength:
        "Votes by the length of the text."
        long_label: str = argument(doc="Label of long texts.")
        limit: int = argument(60, doc="Characters of a long text.", min=1)

        def sample(self, rows):
            return [self.long_label if len(row.text) >= self.limit else None for row in rows]


    if __name__ == "__main__":
        plugin.serve()

README.md of the package describes all eight kinds. Names that begin with an underscore, and
modules below this one, are not for plugins.
"""
from . import _process

_process.prepare()  # before anything that a plugin imports prints, or has a secret

from ._arguments import argument  # noqa: E402
from ._candidates import Candidate  # noqa: E402
from ._context import Context  # noqa: E402
from ._densestore import DenseStore  # noqa: E402
from ._documents import Document, Passage  # noqa: E402
from ._errors import ArgumentError, Cancelled, Invalid, Refused, StageError, Stopped, Transient, Unavailable  # noqa: E402
from ._host import Call, Host, key_of  # noqa: E402
from ._plugin import Plugin  # noqa: E402
from ._records import Addition, Answer, Chunk, Draw, Message, Pending, Prompt, Ranked, Rejection, Sample, Verdict  # noqa: E402
from ._results import each  # noqa: E402
from ._rows import Row, Rows  # noqa: E402
from ._stage import Setup  # noqa: E402
from ._store import Attached, AttachedField, Collection, Entry, Filter, Hit, Hits, Page, Query, Scan, Search  # noqa: E402
from ._training import TrainingRow  # noqa: E402
from ._vectors import normalize  # noqa: E402

__all__ = [
    "Addition", "Answer", "ArgumentError", "Attached", "AttachedField", "Call", "Cancelled", "Candidate", "Chunk", "Collection", "Context",
    "DenseStore", "Document", "Draw", "Entry", "Filter", "Hit", "Hits", "Host", "Invalid", "Message", "Page", "Passage", "Pending", "Plugin", "Prompt",
    "Query", "Ranked", "Refused", "Rejection", "Row", "Rows", "Sample", "Scan", "Search", "Setup", "StageError", "Stopped",
    "TrainingRow", "Transient", "Unavailable", "Verdict", "argument", "each", "key_of", "normalize",
]
