"""Tests of racflow.Classifier. They need scikit-learn, and a racflow that RACFLOW_BINARY names."""
from __future__ import annotations

import ast
import copy
import csv
import gc
import io
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

try:
    import joblib
    import numpy as np
    from sklearn.base import clone
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import StackingClassifier
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.utils.estimator_checks import check_estimator
    from sklearn.utils.validation import validate_data
except ImportError:
    raise unittest.SkipTest("scikit-learn is not there")

import helper
import racflow
from helper import ROOT
from racflow import _classifier


def rows(path, labels):
    """Texts and labels of the examples with so many labels."""
    with open(ROOT / "examples" / path, newline="") as file:
        read = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    known = sorted({row["label"] for row in read})[:labels]
    return tuple(map(list, zip(*((row["text"], row["label"]) for row in read if row["label"] in known))))


TEXTS, LABELS = rows("intent/train.tsv", 4)
QUESTIONS, TRUTH = rows("intent/test.tsv", 4)


def hashing(**more):
    return racflow.Classifier(embedder="hashing", **more)


def fast(**more):
    return hashing(voters=("neighbours",), **more)


def lower(texts):
    return [text.lower() for text in texts]


class Folders(unittest.TestCase):
    """Has no folder left after each test but the cache that all estimators of a program share."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.enterContext(mock.patch.object(tempfile, "tempdir", str(self.folder)))
        _classifier._program_cache.cache_clear()
        self.addCleanup(self.check)

    def check(self):
        gc.collect()
        self.assertLessEqual(set(self.folder.glob("racflow-*")), {_classifier._program_cache(os.getpid())})


class Labels(Folders):
    def test_kinds_of_labels(self):
        fitted = hashing().fit(TEXTS, LABELS)
        self.assertGreater(fitted.score(QUESTIONS, TRUTH), 0.5)
        for kind in (LABELS, [LABELS.index(label) for label in LABELS], [label == LABELS[0] for label in LABELS], np.array(LABELS, dtype=object)):
            with self.subTest(kind=type(kind[0])):
                fitted = fast().fit(TEXTS, kind)
                self.assertEqual(list(fitted.classes_), sorted(set(kind)))
                self.assertEqual(fitted.predict(TEXTS[:3]).dtype, fitted.classes_.dtype)
                self.assertEqual(list(fitted.predict(TEXTS)), list(kind))

    def test_kinds_of_texts(self):
        fitted = fast().fit(np.array(TEXTS)[:, None], LABELS)
        for kind in (TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object)[:, None]):
            self.assertEqual(list(fitted.predict(kind)), LABELS)
        for wrong in (np.array([TEXTS, TEXTS]).T, [*TEXTS, None], [1.5], [], "a text"):
            with self.assertRaises(ValueError):
                fitted.predict(wrong)

    def test_frames(self):
        try:
            import pandas as pd
            import polars as pl
        except ImportError:
            self.skipTest("pandas or polars is not there")
        series = pd.Series(TEXTS, index=range(7, 7 + len(TEXTS)))
        fitted = fast().fit(series, pd.Series(LABELS, dtype="category"))
        for kind in (series, series.to_frame(), pl.Series(TEXTS), pl.DataFrame({"text": TEXTS})):
            self.assertEqual(list(fitted.predict(kind)), LABELS)

    def test_probabilities(self):
        with mock.patch.object(_classifier, "LISTED", 2):  # the other two labels share what is left
            few = hashing().fit(TEXTS, LABELS).predict_proba(QUESTIONS)
        fitted = hashing().fit(TEXTS, LABELS)
        all_of = fitted.predict_proba(QUESTIONS)
        np.testing.assert_allclose(np.sort(few)[:, 2:], np.sort(all_of)[:, 2:], atol=1e-5)
        for found in (few, all_of):
            np.testing.assert_allclose(found.sum(axis=1), 1)
            self.assertEqual(list(fitted.classes_[found.argmax(axis=1)]), list(fitted.predict(QUESTIONS)))

    def test_texts_without_words(self):
        fitted = fast().fit([*TEXTS, " "], [*LABELS, LABELS[-1]])
        self.assertEqual(list(fitted.predict(["", TEXTS[0]])), [LABELS[-1], LABELS[0]])
        np.testing.assert_allclose(fitted.predict_proba([" "])[0], np.unique([*LABELS, LABELS[-1]], return_counts=True)[1] / (len(LABELS) + 1))

    def test_several_labels(self):
        with open(ROOT / "examples" / "tags" / "train.tsv", newline="") as file:
            read = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        names = sorted({tag for row in read for tag in row["tags"].split(";")})
        texts, tags = [row["text"] for row in read], np.array([[tag in row["tags"].split(";") for tag in names] for row in read], dtype=int)
        fitted = hashing(voters=("neighbours", "prototype")).fit(texts[:200], tags[:200])
        found, likely = fitted.predict(texts[200:]), fitted.predict_proba(texts[200:])
        self.assertEqual(found.shape, tags[200:].shape)
        self.assertGreater((found & tags[200:]).sum() / (found | tags[200:]).sum(), 0.4)
        self.assertTrue(((0 <= likely) & (likely <= 1)).all())
        self.assertGreater(likely[found == 1].mean(), 3 * likely[found == 0].mean())
        self.assertGreater(np.count_nonzero(likely[found == 0]), 0)

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "written as text"):
            fast().fit(TEXTS[:2], ["a", "a "])
        with self.assertRaises(NotFittedError):
            fast().predict(TEXTS)
        with self.assertRaises(racflow.PipelineError):
            hashing(voters=("nobody",)).fit(TEXTS, LABELS)
        _classifier._pull_minilm.cache_clear()
        with mock.patch.object(_classifier, "command", return_value=(1, "", "no network")):
            with self.assertRaisesRegex(racflow.Error, 'embedder="hashing".*no network'):
                racflow.Classifier().fit(TEXTS, LABELS)

    def test_file(self):
        fitted = racflow.Classifier(file=ROOT / "pipelines" / "intent.hcl", vars={"embedder": "hashing"}, trust=True).fit(TEXTS, LABELS)
        self.assertGreater(fitted.score(QUESTIONS, TRUTH), 0.5)
        found = fitted.predict_proba(QUESTIONS)  # its results have one probability
        np.testing.assert_allclose(found.sum(axis=1), 1)
        self.assertEqual(list(fitted.classes_[found.argmax(axis=1)]), list(fitted.predict(QUESTIONS)))


class ScikitLearn(Folders):
    def test_selection(self):
        self.assertEqual(len(cross_val_score(fast(), TEXTS, LABELS, cv=3)), 3)
        for jobs in (None, 2):
            search = GridSearchCV(hashing(), {"voters": [("neighbours",), ("prototype",)]}, cv=2, n_jobs=jobs).fit(TEXTS, LABELS)
            self.assertGreater(search.best_score_, 0.5)
            self.assertGreater(search.score(QUESTIONS, TRUTH), 0.5)

    def test_texts_are_embedded_once(self):
        if not helper.minilm():
            self.skipTest("minilm is not there")
        for chosen, embedded in (slice(None), len(TEXTS)), (slice(5, None), 0):
            with self.assertLogs("racflow", "INFO") as said:
                racflow.Classifier(voters=("neighbours",)).fit(TEXTS[chosen], LABELS[chosen])
            self.assertIn(f", {embedded} embedded with minilm", "\n".join(said.output))

    def test_ensembles(self):
        self.assertEqual(list(make_pipeline(FunctionTransformer(lower), fast()).fit(TEXTS, LABELS).predict(TEXTS)), LABELS)
        calibrated = CalibratedClassifierCV(fast(), cv=2).fit(TEXTS, LABELS)
        np.testing.assert_allclose(calibrated.predict_proba(QUESTIONS).sum(axis=1), 1)
        stack = StackingClassifier([("near", fast()), ("central", hashing(voters=("prototype",)))], LogisticRegression(), cv=2).fit(TEXTS, LABELS)
        self.assertGreater(stack.score(QUESTIONS, TRUTH), 0.5)

    def test_parameters(self):
        estimator = clone(fast(neighbours=5)).set_params(neighbours=7)
        self.assertEqual((estimator.get_params()["neighbours"], estimator.get_params()["embedder"]), (7, "hashing"))

    def test_copies(self):
        fitted = hashing().fit(TEXTS, LABELS)
        expected = fitted.predict_proba(QUESTIONS)
        packed = io.BytesIO()
        joblib.dump(fitted, packed)
        packed.seek(0)
        for other in (copy.deepcopy(fitted), joblib.load(packed)):
            np.testing.assert_array_equal(other.predict_proba(QUESTIONS), expected)
        packed = pickle.dumps(fitted)
        del fitted, other
        other = pickle.loads(packed)
        there = files(other)
        other.predict(QUESTIONS)
        self.assertEqual(files(other), there)  # neither the knowledge nor what is learnt from it was made again

    def test_checks(self):
        """Every check that scikit-learn has for classifiers, on numbers that are written as words."""
        found = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for result in check_estimator(Numbers(), on_fail=None, on_skip=None):
                found.setdefault(result["check_name"], set()).add(result["status"])
                with self.subTest(check=result["check_name"]):
                    self.assertIn(result["check_name"], PASSES + list(SKIPPED), f"name this check: {result['status']}, {result['exception']}")
                    self.assertEqual(result["status"], "skipped" if result["check_name"] in SKIPPED else "passed", result["exception"])
        self.assertEqual(check_estimator(hashing(), on_skip=None)[1:], [])  # of texts, scikit-learn checks only that they can be cloned


# scikit-learn passes over estimators that take no numbers, so the checks get one that writes numbers as words.
PASSES = """
    check_estimator_cloneable check_estimator_tags_renamed check_valid_tag_types check_estimator_repr check_no_attributes_set_in_init
    check_fit_score_takes_y check_estimators_overwrite_params check_dont_overwrite_parameters check_estimators_fit_returns_self
    check_readonly_memmap_input check_estimators_unfitted check_do_not_raise_errors_in_init_or_set_params check_n_features_in_after_fitting
    check_mixin_order check_positive_only_tag_during_fit check_estimators_dtypes check_complex_data check_dtype_object
    check_estimators_empty_data_messages check_pipeline_consistency check_estimators_nan_inf check_estimator_sparse_tag
    check_estimator_sparse_array check_estimator_sparse_matrix check_estimators_pickle check_f_contiguous_array_estimator
    check_classifier_data_not_an_array check_classifiers_one_label check_classifiers_one_label_sample_weights check_classifiers_classes
    check_estimators_partial_fit_n_features check_classifiers_train check_classifiers_regression_target
    check_classifiers_multilabel_representation_invariance check_classifiers_multilabel_output_format_predict
    check_classifiers_multilabel_output_format_predict_proba check_supervised_y_no_nan check_supervised_y_2d
    check_non_transformer_estimators_n_iter check_decision_proba_consistency check_parameters_default_constructible
    check_methods_sample_order_invariance check_methods_subset_invariance check_fit2d_1sample check_fit2d_1feature
    check_get_params_invariance check_set_params check_dict_unchanged check_fit_idempotent check_fit_check_is_fitted check_n_features_in
    check_fit1d check_fit2d_predict1d check_requires_y_none
""".split()
SKIPPED = {
    "check_array_api_input": "scikit-learn runs it with SCIPY_ARRAY_API=1 only",
    "check_classifiers_multilabel_output_format_decision_function": "there is no decision_function",
}


class EmptySets(unittest.TestCase):
    def test_rows_of_zeros(self):
        """Texts that belong to no label are rows of zeros, in what is learnt and in what is predicted."""
        own = sorted(set(LABELS))[:2]
        y = np.array([[label == one for one in own] for label in LABELS], dtype=int)
        classifier = hashing().fit(TEXTS, y)
        expected = np.array([[label == one for one in own] for label in TRUTH], dtype=int)
        predicted = classifier.predict(QUESTIONS)
        empty = expected.sum(axis=1) == 0
        self.assertGreater((predicted[empty].sum(axis=1) == 0).mean(), 0.7)
        self.assertGreater((predicted == expected).mean(), 0.8)
        probabilities = classifier.predict_proba(QUESTIONS)
        self.assertFalse(np.isnan(probabilities).any())
        self.assertLess(probabilities[empty].mean(), 0.3)


class Numbers(racflow.Classifier):
    """A Classifier of rows of numbers: each number is a word."""

    def __init__(self, *, embedder="hashing", voters=("neighbours",)):
        super().__init__(embedder=embedder, voters=voters)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        return tags

    def fit(self, X, y):
        return super().fit(self.texts(X, True), y)

    def predict(self, X):
        return super().predict(self.texts(X, False))

    def predict_proba(self, X):
        return super().predict_proba(self.texts(X, False))

    def texts(self, X, reset):
        X = validate_data(self, X, reset=reset, dtype=float)
        return [" ".join(f"c{column}x{round(2 * number)}" for column, number in enumerate(row)) for row in X]


def files(estimator):
    return {path for path in estimator._fitted.path.rglob("*") if path.is_file()}


@unittest.skipUnless(sys.platform == "linux", "counts open files in /proc")
class Leaks(Folders):
    def test_many_estimators(self):
        with tempfile.TemporaryDirectory() as folder:
            here = os.path.dirname(helper.__file__)
            environment = {**os.environ, "PYTHONPATH": f"{helper.ROOT / 'sdk' / 'python'}{os.pathsep}{here}", "TMPDIR": folder}
            ran = subprocess.run([sys.executable, "-c", MANY], env=environment, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertTrue(helper.gone(set(ast.literal_eval(ran.stdout))))
            self.assertEqual(os.listdir(folder), [])

    def test_fork(self):
        fitted = fast().fit(TEXTS, LABELS)
        if (child := os.fork()) == 0:
            try:
                same = list(fitted.predict(TEXTS)) == LABELS
                del fitted
                gc.collect()
            finally:
                os._exit(0 if same else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(fitted._fitted.path.is_dir())
        self.assertEqual(list(fitted.predict(TEXTS)), LABELS)


MANY = '''
import gc, os, tempfile, threading
import racflow
from helper import tree

def counts():
    gc.collect()
    return len(tree(os.getpid())), len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir(tempfile.gettempdir()))

def fit(n):
    texts = [f"{word} {i}" for word in ("parcel", "refund") for i in range(4)]
    return [racflow.Classifier(embedder="hashing", voters=("neighbours",)).fit(texts, [0] * 4 + [1] * 4) for _ in range(n)]

fit(1)
before = counts()
fitted = fit(5)
most = counts()[0]
fitted += fit(15)
assert all(list(one.predict(["my parcel", "a refund"])) == [0, 1] for one in fitted[::4])
assert counts()[0] <= most, (counts(), most)
del fitted
assert counts() == before, (before, counts())
keep = fit(2)  # what is not closed ends with the program
print(tree(os.getpid()))
'''


if __name__ == "__main__":
    unittest.main()
