"""Run racflow pipelines from Python.

::

    import racflow

    with racflow.Pipeline("intent.hcl") as pipeline:
        answers = pipeline.run(frame, text="utterance")

A Pipeline keeps one process of the program ``racflow`` warm and asks it over a private socket. The package has no
dependencies; it takes data frames of pandas, polars and pyarrow where the program that uses it has them. Modules and
names that begin with an underscore are not part of the interface.
"""
from ._binary import binary
from ._errors import Diagnostic, Error, ItemError, PipelineError
from ._pipeline import Pipeline
from ._reports import Evaluation, Plan, Promise
from ._results import Result

__all__ = ["Diagnostic", "Error", "Evaluation", "ItemError", "Pipeline", "PipelineError", "Plan", "Promise", "Result", "binary"]
