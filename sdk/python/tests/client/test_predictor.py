"""Batches of Ray Data and Spark, without either: .ci/engines has them."""
from __future__ import annotations

import os
import pickle
import signal
import unittest
from typing import Any
from unittest import mock

import helper
import numpy
import pandas
import pyarrow

import racflow
from racflow import _pipeline, _predictor

TEXTS = ["where is my parcel?", None, "I was charged twice", "  "]
ANSWERS = ["delivery_missing_parcel", None, "payment_double_charge", None]
ERRORS = [None, "the text is empty", None, "the text is empty"]


def predictor(**more: Any) -> racflow.Predictor:
    return racflow.Predictor(**helper.arguments(**more))  # type: ignore[arg-type]


class Struct:
    """What Predictor.schema uses of Spark's StructType."""

    def __init__(self, *fields: dict[str, Any]) -> None:
        self.names, self.fields = [one["name"] for one in fields], list(fields)

    def jsonValue(self) -> dict[str, Any]:
        return {"type": "struct", "fields": list(self.fields)}

    @classmethod
    def fromJson(cls, described: dict[str, Any]) -> Struct:
        return cls(*described["fields"])


class TestPredictor(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.predictor = predictor(prefix="intent_", columns=("answer", "confidence", "flagged", "error", "votes", "labels"))
        cls.addClassCleanup(cls.predictor._pipeline.close)

    def test_batches(self) -> None:
        columns = ["n", "text", *(f"intent_{name}" for name in ("answer", "confidence", "flagged", "error", "votes", "labels"))]
        table = pyarrow.table({"n": range(4), "text": TEXTS})
        batches: dict[str, Any] = {
            "pandas": pandas.DataFrame({"n": range(4), "text": TEXTS}, index=[7, 3, 3, -1]), "table": table, "record batch": table.to_batches()[0],
            "sliced": pyarrow.concat_tables([table.slice(1), table]).slice(3), "arrays": {"n": numpy.arange(4), "text": numpy.array(TEXTS, object)},
        }
        for name, batch in batches.items():
            with self.subTest(name):
                got = self.predictor(batch)
                self.assertIs(type(got), type(batch))
                if name == "pandas":
                    pandas.testing.assert_frame_equal(got[["n", "text"]], batch)
                rows = got.to_pydict() if hasattr(got, "to_pydict") else {column: list(got[column]) for column in got}
                self.assertEqual(list(rows), columns)
                self.assertEqual(rows["n"], list(range(4)))
                for column, cells in (("answer", ANSWERS), ("error", ERRORS)):
                    self.assertEqual([None if pandas.isna(cell) else cell for cell in rows["intent_" + column]], cells)
                self.assertEqual([pandas.isna(cell) for cell in rows["intent_confidence"]], [False, True, False, True])
                self.assertEqual([{vote["voter"] for vote in votes} for votes in rows["intent_votes"][1:3]], [set(), {"neighbours", "prototype", "linear"}])

    def test_types_do_not_depend_on_what_is_in_a_batch(self) -> None:
        full = {"text": TEXTS, "n": range(4)}
        for name, texts in {"no rows": [], "no answers": [None, ""], "no errors": ["a parcel"]}.items():
            with self.subTest(name):
                some = {"text": pyarrow.array(texts, pyarrow.string()), "n": pyarrow.array(range(len(texts)), "int64")}
                self.assertEqual(self.predictor(pyarrow.table(some)).schema, self.predictor(pyarrow.table(full)).schema)
                frames = [self.predictor(pandas.DataFrame(cells).astype({"text": "string", "n": "int64"})) for cells in (full, {**some, "text": texts})]
                self.assertEqual(list(frames[0].dtypes), list(frames[1].dtypes))

    def test_columns_that_do_not_fit(self) -> None:
        wrong: dict[str, tuple[Any, type[Exception], str]] = {
            "no text": (pandas.DataFrame({"body": TEXTS}), KeyError, "no column text among body"),
            "twice": (pyarrow.table({"text": TEXTS, "intent_error": TEXTS}), ValueError, "column intent_error already"),
            "a list": (TEXTS, TypeError, "not list"), "a column": (pandas.Series(TEXTS), TypeError, "not Series"),
        }
        for name, (batch, error, message) in wrong.items():
            with self.subTest(name), self.assertRaisesRegex(error, message):
                self.predictor(batch)
        with self.assertRaisesRegex(ValueError, "some of answer, confidence"):
            predictor(columns=["anwser"])
        with self.assertRaisesRegex(ValueError, "some of answer, confidence"):
            predictor(columns="answer")

    def test_schema(self) -> None:
        text = {"name": "text", "type": "string", "nullable": False, "metadata": {"comment": "of a customer"}}
        of = Struct(text)
        got = predictor(columns=["answer", "votes"], prefix="i_").schema(of)
        self.assertEqual(of.names, ["text"])
        self.assertEqual(got.names, ["text", "i_answer", "i_votes"])
        self.assertEqual(got.fields[0], text)
        self.assertEqual([one["type"] for one in got.fields[2]["type"]["elementType"]["fields"]], ["string", "string", "double", "boolean"])
        with self.assertRaisesRegex(ValueError, "column answer already"):
            predictor().schema(Struct(text, {**text, "name": "answer"}))
        with self.assertRaisesRegex(KeyError, "no column body"):
            predictor(text="body").schema(of)

    def test_tasks_of_a_process_share_a_server(self) -> None:
        pickled = pickle.dumps(self.predictor)
        rows = [pandas.DataFrame({"text": ["a parcel"]})]
        with mock.patch.object(_predictor, "_last"):
            first = pickle.loads(pickled)
            list(first.map(iter(rows)))
            server = first._pipeline._server
            del first
            second = pickle.loads(pickled)
            list(second.map(iter(rows)))
            self.assertIs(second._pipeline._server, server)
            self.assertIsNot(server, self.predictor._pipeline._server)
            other = pickle.loads(pickle.dumps(predictor(watch=True)))
            self.assertIsNot(other._pipeline, second._pipeline)
            del second, server
        del other

    def test_a_killed_server_costs_no_row(self) -> None:
        batch = pyarrow.table({"text": TEXTS})
        want = self.predictor(batch)
        write = _pipeline._line

        def kill(item: Any) -> bytes:
            if lines.call_count == 1:  # nothing is sent yet
                os.killpg(self.predictor._pipeline._server.pid, signal.SIGKILL)  # type: ignore[union-attr]
            return write(item)

        with mock.patch.object(_pipeline, "_line", side_effect=kill) as lines:
            self.assertEqual(self.predictor(batch), want)
            self.assertGreater(lines.call_count, len(TEXTS))

    def test_a_pipeline_that_cannot_start(self) -> None:
        with self.assertRaises(racflow.PipelineError) as raised:
            predictor(embedder="nothing")(pyarrow.table({"text": TEXTS}))
        self.assertTrue(pickle.loads(pickle.dumps(raised.exception)).diagnostics)  # engines send it to the program


if __name__ == "__main__":
    unittest.main()
