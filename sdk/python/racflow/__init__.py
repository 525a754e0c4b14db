"""Run racflow pipelines from Python.

::

    import racflow

    with racflow.Pipeline("intent.hcl") as pipeline:
        answers = pipeline.run(frame, text="utterance")

A Pipeline keeps one process of the program ``racflow`` warm and asks it over a private socket. The package has no
dependencies; it takes data frames of pandas, polars and pyarrow where the program that uses it has them. Modules and
names that begin with an underscore are not part of the interface.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _binary
from ._binary import binary
from ._errors import Diagnostic, Error, ItemError, PipelineError
from ._pipeline import Pipeline
from ._predictor import Predictor
from ._reports import Evaluation, Plan, Promise
from ._results import Result

if TYPE_CHECKING:
    from ._classifier import Classifier as Classifier

__all__ = ["Diagnostic", "Error", "Evaluation", "ItemError", "Pipeline", "PipelineError", "Plan", "Predictor", "Promise", "Result", "binary"]


def __getattr__(name: str) -> Any:
    if name == "Classifier":  # not before it is asked for, since it needs scikit-learn
        from ._classifier import Classifier

        return Classifier
    if name == "__version__":  # of the program that is used
        return _binary.command("--version")[1].split()[1]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
