"""An estimator for scikit-learn: a racflow pipeline that learns from labelled texts."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    import numpy as np
    from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore
    from sklearn.utils.multiclass import check_classification_targets, type_of_target  # type: ignore
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d  # type: ignore
except ImportError as err:
    raise ImportError("racflow.Classifier needs scikit-learn: pip install scikit-learn") from err

from ._binary import command
from ._errors import Error, ItemError
from ._pipeline import Pipeline

if TYPE_CHECKING:
    from ._results import Result

WARM = 4  # servers that a program keeps running for its estimators; each is several processes
LISTED = 50  # labels whose probability a result lists; the others share what is left

_FILE = """variable "train" {{ type = path }}
{head}
knowledge "examples" {{
  source {{
    path = var.train
    {many}
  }}
  embed {{
    {embed}
  }}
}}
pipeline "classifier" {{
  retrieve "near" {{ top_k = {near} }}
  {voters}
  elect "label" {{
    accept = "answer in labels"
    config {{ labels = {listed} }}
  }}
}}
"""


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Sorts texts into labels by what similar texts have, with calibrated probabilities.

    X is a list, array, Series or frame of one column of texts. y holds a label for each (texts,
    numbers or booleans), or is an indicator matrix where a text has several labels, or none.

    Parameters:
        embedder: "minilm", which fit downloads once (90 MB); "hashing", which needs no model and is
            weaker; or the name or folder of an encoder, as in `racflow model list`.
        voters: those that vote: "neighbours", "prototype", "linear".
        neighbours: how many of the nearest texts vote.
        model: a language model that votes, too, such as "gpt-4o-mini"; None: no model is called.
        provider, base_url: where the model is: "openai" (with a server that speaks as it does at
            base_url) or "anthropic". Keys come from the environment.
        file: a pipeline file to use in place of all of the above, with a variable train for the
            labelled rows. It has to be there wherever the estimator is used.
        vars: further variables of that file.
        trust: what that file may use beyond its folder, as in Pipeline.
        state: a folder that keeps vectors and answers of models for later programs; None: they
            are kept, and shared by all estimators, until the program ends.

    Attributes:
        classes_: the labels, sorted; the numbers of the columns where y is an indicator matrix.

    Fitted estimators hold their rows and vectors in a folder of their own, which goes with them. A
    pickle has all of it, so an estimator that is loaded elsewhere answers without embedding again.
    The processes that answer run while an estimator is in use; a program keeps those of the last four.
    """

    def __init__(
        self, *, embedder: str = "minilm", voters: Sequence[str] = ("neighbours", "prototype", "linear"), neighbours: int = 30,
        model: str | None = None, provider: str = "openai", base_url: str | None = None,
        file: str | os.PathLike[str] | None = None, vars: Mapping[str, Any] | None = None, trust: Any = None,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        self.embedder = embedder
        self.voters = voters
        self.neighbours = neighbours
        self.model = model
        self.provider = provider
        self.base_url = base_url
        self.file = file
        self.vars = vars
        self.trust = trust
        self.state = state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any) -> Classifier:
        """Learns from texts and their labels, and returns itself.

        Raises ValueError for texts or labels that cannot be used, PipelineError where the pipeline
        cannot start, and Error where the model of the embedder cannot be had.
        """
        texts = _texts(X)
        if y is None:
            raise ValueError("This Classifier estimator requires y to be passed, but the target y is None.")
        check_consistent_length(texts, y)
        check_classification_targets(y)
        many = type_of_target(y) == "multilabel-indicator"
        if many:
            matrix = np.asarray(y.toarray() if hasattr(y, "toarray") else y).astype(bool)
            classes, shares = np.arange(matrix.shape[1]), matrix.mean(axis=0)
            rows: list[Any] = [[str(i) for i in np.flatnonzero(row)] for row in matrix]
        else:
            classes, inverse, counts = np.unique(column_or_1d(y, warn=True), return_inverse=True, return_counts=True)
            shares = counts / len(texts)
            rows = [str(classes[i]) for i in inverse]
        index = {str(label): i for i, label in enumerate(classes)}
        if len({name.strip() for name in index} - {""}) < len(classes):
            raise ValueError("labels are blank, or are the same when they are written as text")
        if self.file is None and self.embedder == "minilm":
            _pull_minilm()
        fitted = _Fitted(None if self.file is None else os.path.abspath(self.file), self.vars or {}, self.trust, self.state)
        with open(fitted.path / "rows.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in zip(texts, rows) if text.strip())
        if self.file is None:
            (fitted.path / "pipeline.hcl").write_text(self._pipeline(many, len(classes)), encoding="utf-8")
        with fitted.warm() as pipeline:
            pipeline.start()
        self.classes_, self._many, self._index, self._shares, self._fitted = classes, many, index, shares, fitted
        return self

    def predict(self, X: Any) -> Any:
        """Returns the label of each text, or an indicator matrix as y was: shape (n,) or (n, labels).

        A text that is blank, or about which no voter knows anything, gets the most frequent label.
        Raises ItemError where a text cannot be answered.
        """
        answers = np.zeros((len(results := self._answer(X)), len(self.classes_)), dtype=int)
        for row, result in zip(answers, results):
            row[self._answered(result)] = 1
        return answers if self._many else self.classes_[answers.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Any:
        """Returns how likely each label is for each text, in the order of classes_: shape (n, labels).

        Rows sum to 1; where a text has several labels, each probability stands for itself. Raises as
        predict does.
        """
        out = np.full((len(results := self._answer(X)), len(self.classes_)), np.nan)
        for row, result in zip(out, results):
            if result is None:
                row[:] = self._shares
                continue
            sure = result.agreement if result.confidence is None else result.confidence
            for label, confidence in (result.labels or {str(result.answer): sure}).items() if result.answer != "[]" or result.labels else ():
                row[self._index[label]] = confidence
            left = np.isnan(row)
            row[left] = 0 if self._many else min(max(1 - np.nansum(row), 0) / max(left.sum(), 1), np.nanmin(row))
            if not self._many:
                row /= row.sum()
                answer = self._answered(result)
                if row.argmax() not in answer:  # another label is just as likely
                    row[answer] = np.nextafter(row.max(), 2)
        return out

    def _answer(self, X: Any) -> list[Result | None]:
        check_is_fitted(self, "classes_")
        texts = _texts(X)
        with self._fitted.warm() as pipeline:
            results = pipeline.run(texts)
        for i, (text, result) in enumerate(zip(texts, results)):
            if result.error and text.strip():
                raise ItemError(f"X[{i}]: {result.error.args[0]}", result.error.stage)
        return [result if result.answer is not None else None for result in results]

    def _answered(self, result: Result | None) -> list[int]:
        """The places in classes_ of what was answered."""
        if result is None:
            return [int(np.argmax(self._shares))]
        if not self._many:
            return [self._index[str(result.answer)]]
        return [self._index[label] for label in str(result.answer).split("; ") if label != "[]"]

    def _pipeline(self, many: bool, labels: int) -> str:
        embed = f"use = {_hcl(self.embedder)}"
        if self.embedder not in ("minilm", "hashing"):
            embed = f'use = "encoder"\n    config {{ model = {_hcl(self.embedder)} }}'
        settings = {"neighbours": f"config {{ k = {self.neighbours} }}"}
        blocks = [f"sample {_hcl(v)} {{\n    use = {_hcl(v)}\n    {settings.get(v, '')}\n  }}" for v in self.voters]
        head = ""
        if self.model is not None:
            address = f"\n  base_url = {_hcl(self.base_url)}" if self.base_url else ""
            head = f'model "llm" {{\n  name = {_hcl(self.model)}\n  provider = {_hcl(self.provider)}{address}\n}}\n'
            blocks += ['prompt "shots" { use = "completion" }', 'sample "llm" { model = model.llm }']
        return _FILE.format(
            head=head, embed=embed, near=max(60, self.neighbours), voters="\n  ".join(blocks),
            many='labels = "many"' if many else "", listed=labels if many else min(labels, LISTED))


class _Fitted:
    """The folder of a fitted estimator, with its rows, pipeline file and state, and the server on it."""

    _all: weakref.WeakSet[_Fitted] = weakref.WeakSet()
    _lock = threading.RLock()

    def __init__(self, file: str | None, vars: Mapping[str, Any], trust: Any, state: Any, files: Mapping[str, bytes] | None = None) -> None:
        self.path, self.arguments = _private_folder(), (file, vars, trust, state)
        for name, content in (files or {}).items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_bytes(content)
        shared = _program_cache(os.getpid()) if state is None else pathlib.Path(state).resolve()
        own = self.path / ".racflow"
        own.mkdir(exist_ok=True)
        shared.mkdir(parents=True, exist_ok=True)
        if file is None:  # our own wants nothing but what the parameters say
            file, vars, trust = str(self.path / "pipeline.hcl"), {}, True
        self.pipeline = Pipeline(file, state=own, watch=False, trust=trust, vars={**vars, "train": self.path / "rows.jsonl"})
        self.pipeline._arguments["serve"].append(f"--cache={shared}")
        self.users, self.used = 0, 0.0
        weakref.finalize(self, _end, os.getpid(), self.path, self.pipeline)
        with self._lock:
            self._all.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        files = {str(path.relative_to(self.path)): path.read_bytes() for path in self.path.rglob("*") if path.is_file()}
        return _Fitted, (*self.arguments, files)

    @contextlib.contextmanager
    def warm(self) -> Iterator[Pipeline]:
        """Lends the pipeline, and afterwards ends the servers that were idle longest beyond WARM."""
        with self._lock:
            self.users += 1
        try:
            yield self.pipeline
        finally:
            with self._lock:
                self.users, self.used = self.users - 1, time.monotonic()
                idle = sorted((f for f in self._all if f.used and not f.users), key=lambda f: f.used)
                for fitted in idle[:-WARM]:
                    fitted.pipeline.close()
                    fitted.used = 0.0

    @classmethod
    def _forget(cls) -> None:
        """Replaces the lock after a fork, during which another thread may have held it."""
        cls._lock = threading.RLock()


os.register_at_fork(after_in_child=_Fitted._forget)


def _private_folder() -> pathlib.Path:
    return pathlib.Path(tempfile.mkdtemp(prefix="racflow-"))


def _end(pid: int, path: pathlib.Path, pipeline: Pipeline | None = None) -> None:
    if pid == os.getpid():  # what a forked child inherits stays its parent's
        if pipeline is not None:
            pipeline.close()
        shutil.rmtree(path, ignore_errors=True)


@functools.cache
def _program_cache(pid: int) -> pathlib.Path:
    """The cache of all estimators of this program, so that texts in many folds are embedded once."""
    path = _private_folder()
    weakref.finalize(_Fitted, _end, pid, path)
    return path


@functools.cache
def _pull_minilm() -> None:
    code, _, said = command("model", "pull", "minilm", "--if-missing")
    if code:
        raise Error(f'the model minilm cannot be had; embedder="hashing" needs none: {said.strip()}')


def _hcl(text: str) -> str:
    return json.dumps(str(text), ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")


def _texts(X: Any) -> list[str]:
    values = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=object)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"X has to be a list, a Series or one column of texts; its shape is {values.shape}")
    if not len(values):
        raise ValueError("X has no texts")
    for i, text in enumerate(values):
        if not isinstance(text, str):
            raise ValueError(f"X[{i}] is no text: {text!r}")
    return [str(text) for text in values]
