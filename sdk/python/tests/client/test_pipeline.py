"""Answers, frames and errors of a pipeline."""
from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.server
import itertools
import pathlib
import pickle
import socketserver
import subprocess
import tempfile
import threading
import unittest
from collections.abc import AsyncIterator, Iterator
from unittest import mock

import helper
import pandas
import polars
import pyarrow

import racflow
from racflow import _http

TEXTS = ["where is my parcel?", None, "I was charged twice", float("nan"), "please cancel my subscription"]
ANSWERS = ["delivery_missing_parcel", None, "payment_double_charge", None, "subscription_cancel"]
COLUMNS = ["answer", "confidence", "flagged", "votes", "error"]


class TestPipeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.pipeline = helper.pipeline().start()
        cls.addClassCleanup(cls.pipeline.close)

    def test_one_answer(self) -> None:
        result = self.pipeline.answer("where is my parcel?", id="a", meta={"channel": "mail"})
        self.assertEqual((result.id, result.answer, result.error), ("a", "delivery_missing_parcel", None))
        self.assertGreater(result.confidence or 0, 0.5)
        self.assertEqual({vote["voter"] for vote in result.votes}, {"neighbours", "prototype", "linear"})
        self.assertIn("delivery_missing_parcel", repr(result))
        self.assertIn("<td>delivery_missing_parcel</td>", result._repr_html_())
        self.assertEqual(pickle.loads(pickle.dumps(result)), result)

    def test_decisions(self) -> None:
        label = "delivery_missing_parcel"
        questions = {"which": {"type": "choice", "criteria": {"complaint_staff": None, label: None, "none": None}}, "is": {"type": "noul", "instructions": label}}
        answers = self.pipeline.decide({"text": "where is my parcel?", "channel": "mail"}, questions)
        self.assertEqual(answers["which"]["choice"], label)
        self.assertEqual(answers["which"]["probabilities"][label], answers["is"]["noul"])
        self.assertEqual(asyncio.run(self.pipeline.adecide("where is my parcel?", questions)), answers)
        for state, wrong, message in ((" ", questions, "state: the text is empty"), ("x", {}, "questions: ask at least one question")):
            with self.assertRaisesRegex(racflow.ItemError, message):
                self.pipeline.decide(state, wrong)

    def test_html_is_escaped(self) -> None:
        self.assertIn("&lt;b&gt;", racflow.Result({"id": "1", "text": "<b>", "answer": "x"})._repr_html_())

    def test_pandas(self) -> None:
        indices = {
            "gaps and duplicates": pandas.Index([7, 3, 3, 100, -1], name="row"),
            "several levels": pandas.MultiIndex.from_tuples([("a", 2), ("a", 1), ("b", 1), ("b", 1), ("c", 0)], names=["x", "y"]),
            "dates": pandas.date_range("2026-01-01", periods=5),
        }
        for name, index in indices.items():
            with self.subTest(name):
                frame = pandas.DataFrame({"utterance": TEXTS, "n": range(5)}, index=index)
                for got in (self.pipeline.run(frame, text="utterance"), self.pipeline.run(frame["utterance"])):
                    pandas.testing.assert_index_equal(got.index, index)
                    self.assertEqual(list(got.columns), COLUMNS)
                    self.assertEqual(_texts(got["answer"]), ANSWERS)
                    self.assertEqual(got["error"].isna().tolist(), [answer is not None for answer in ANSWERS])
                    self.assertEqual(got["confidence"].isna().tolist(), [answer is None for answer in ANSWERS])
        missing = self.pipeline.run(pandas.Series([pandas.NA, "x"], dtype="string"))
        self.assertEqual(missing["error"].isna().tolist(), [False, True])
        self.assertEqual(list(self.pipeline.run(frame.iloc[:0], text="utterance").columns), COLUMNS)
        with self.assertRaisesRegex(KeyError, "no column text among utterance, n: text= and label= name the columns"):
            self.pipeline.run(frame)

    def test_polars_and_pyarrow(self) -> None:
        texts = [text if isinstance(text, str) else None for text in TEXTS]
        for data, kind in (
            (polars.DataFrame({"text": texts}), polars.DataFrame), (polars.Series(texts), polars.DataFrame),
            (pyarrow.table({"text": texts}), pyarrow.Table), (pyarrow.chunked_array([texts[:2], texts[2:]]), pyarrow.Table),
        ):
            with self.subTest(type(data)):
                got = self.pipeline.run(data)
                self.assertIsInstance(got, kind)
                self.assertEqual(getattr(got, "column_names", None) or got.columns, COLUMNS)
                self.assertEqual((got["answer"].to_pylist if kind is pyarrow.Table else got["answer"].to_list)(), ANSWERS)
        only = self.pipeline.run(polars.DataFrame({"text": [None]}, schema={"text": polars.String}))
        self.assertEqual(only.schema["answer"], polars.String)

    def test_lists(self) -> None:
        items = [*TEXTS, {"text": "hello", "id": "z", "meta": {"n": 1}}, "\ud800", 12, {"text": "hello", "colour": "red"}]
        got = self.pipeline.run(items)
        self.assertEqual([one.answer for one in got[:5]], ANSWERS)
        self.assertEqual([one.id for one in got[3:6]], ["4", "5", "z"])
        self.assertRegex(str(got[6].error), "UTF-8")
        self.assertEqual((got[7].text, got[7].error), ("12", None))
        self.assertRegex(str(got[8].error), "colour")
        self.assertEqual(self.pipeline.run([]), [])
        for wrong in ("one text", {"text": "x"}, b"x"):
            with self.assertRaisesRegex(TypeError, "answer takes one"):
                self.pipeline.run(wrong)
        with self.assertRaisesRegex(TypeError, "no text"):
            self.pipeline.run([object()])

    def test_an_iterator_is_not_held(self) -> None:
        taken = 0

        def texts() -> Iterator[str]:
            nonlocal taken
            for taken in range(1, 1_000_001):
                yield f"text {taken}"

        results = self.pipeline.run(texts())
        self.assertEqual(taken, 0)
        for number, result in enumerate(itertools.islice(results, 2500), 1):
            self.assertEqual(result.text, f"text {number}")
            self.assertLess(taken - number, 1500)
        results.close()
        self.assertLess(taken, 4000)

    def test_an_error_of_the_source_is_raised(self) -> None:
        async def later() -> AsyncIterator[str]:
            yield "a"
            raise ConnectionError("source")

        async def consume() -> None:
            async for _ in self.pipeline.arun(later()):
                pass

        with self.assertRaisesRegex(ConnectionError, "^source$"):
            list(self.pipeline.run(iter(_failing())))
        with self.assertRaisesRegex(ConnectionError, "^source$"):
            asyncio.run(consume())
        self.assertEqual(self.pipeline.answer("hello").error, None)

    def test_from_threads_and_tasks_at_once(self) -> None:
        def work(thread: int) -> list[bool]:
            return [self.pipeline.answer(f"text {thread} {n}").text == f"text {thread} {n}" for n in range(20)]

        async def tasks() -> list[str]:
            lists = asyncio.gather(*(self.pipeline.arun([f"a {n}", f"b {n}"]) for n in range(10)))
            texts = [one.text for one in await asyncio.gather(*(self.pipeline.aanswer(f"task {n}") for n in range(200)))]
            return texts + [one.text for pair in await lists for one in pair]

        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            threads = [pool.submit(work, n) for n in range(32)]
            self.assertEqual(asyncio.run(tasks()), [f"task {n}" for n in range(200)] + [f"{x} {n}" for n in range(10) for x in "ab"])
            self.assertTrue(all(all(one.result()) for one in threads))

    def test_async_iterators(self) -> None:
        async def source() -> AsyncIterator[str]:
            for n in range(3000):
                yield f"text {n}"

        async def consume() -> None:
            self.assertEqual([one.text async for one in self.pipeline.arun(source())], [f"text {n}" for n in range(3000)])
            self.assertEqual([one.text async for one in self.pipeline.arun(map(str, range(3000)))], [str(n) for n in range(3000)])
            frame = await self.pipeline.arun(pandas.DataFrame({"text": TEXTS}, index=list("edcba")))
            self.assertEqual((_texts(frame["answer"]), list(frame.index)), (ANSWERS, list("edcba")))

        asyncio.run(consume())

    def test_a_question(self) -> None:
        result = self.pipeline.ask("where is my parcel?")
        self.assertEqual(result.answer, "delivery_missing_parcel")
        self.assertEqual(len(result.passages), 60)
        self.assertIn("label", result.passages[0])
        self.assertEqual(asyncio.run(self.pipeline.aask("where is my parcel?")), result)
        with self.assertRaisesRegex(racflow.ItemError, "empty"):
            self.pipeline.ask("")

    def test_errors_of_an_item(self) -> None:
        with self.assertRaisesRegex(racflow.ItemError, "empty") as caught:
            self.pipeline.answer("")
        self.assertIsNone(caught.exception.stage)
        copied = pickle.loads(pickle.dumps(racflow.ItemError("broken", "sample.x")))
        self.assertEqual((str(copied), copied.stage), ("sample.x: broken", "sample.x"))

    def test_progress(self) -> None:
        bar = mock.MagicMock()
        with mock.patch("tqdm.auto.tqdm", return_value=bar) as tqdm:
            self.pipeline.run(["a", "b"], progress=True)
        tqdm.assert_called_once_with(total=2, unit="text")
        self.assertEqual(bar.__enter__.return_value.update.call_count, 2)

    def test_reports(self) -> None:
        rows = pandas.read_csv(helper.ROOT / "examples" / "intent" / "test.tsv", sep="\t")
        evaluation = self.pipeline.eval(rows.rename(columns={"text": "utterance", "label": "intent"}), text="utterance", label="intent")
        self.assertEqual(evaluation.items, 280)
        self.assertEqual(evaluation.voters, self.pipeline.eval(helper.ROOT / "examples" / "intent" / "test.tsv").voters)
        low, high = evaluation.interval or (1, 0)
        self.assertTrue(low < (evaluation.accuracy or 0) < high)
        self.assertIn("accuracy", repr(evaluation))
        self.assertIn("failed: 1", repr(self.pipeline.eval([{"text": "hello", "label": "talk_to_human"}, {"text": None}])))
        self.assertEqual((self.pipeline.plan(rows[:7]).items, self.pipeline.plan(["a", "b"]).cost), (7, 0))
        promise = self.pipeline.tune(rows, accuracy=0.8, variable="flag_below")
        self.assertEqual(promise.accuracy, 0.8)
        self.assertIn("<td>promise</td>", promise._repr_html_())
        with promise.apply() as tuned:
            answers = tuned.run(rows)
        threshold = promise.json["promise"]["threshold"]
        self.assertEqual(answers["flagged"].tolist(), (answers["confidence"] < threshold).tolist())
        with self.assertRaisesRegex(racflow.PipelineError, "label"):
            self.pipeline.tune(rows[["text"]], label=None, accuracy=0.8)


class TestOtherPipelines(unittest.TestCase):
    def test_several_labels(self) -> None:
        frame = pandas.DataFrame({"text": ["my parcel came late and the frame is bent"], "label": [["damage", "delivery"]]})
        with helper.pipeline(file=helper.ROOT / "pipelines" / "tags.hcl") as pipeline:
            got = pipeline.run(frame, label="label")
            self.assertEqual([one["label"] for one in got["labels"][0]], ["delivery", "damage"])
            self.assertEqual(pipeline.answer(frame["text"][0]).labels.keys(), {"delivery", "damage"})
            self.assertEqual(pipeline.eval(frame).accuracy, 1)  # the file's own input has its labels in another column

    def test_columns_of_the_file(self) -> None:
        texts = {"order": "where is my box number", "refund": "i want my money back, case"}
        frame = pandas.DataFrame([{"body": f"{text} {i}", "queue": label} for i in range(6) for label, text in texts.items()])
        with tempfile.TemporaryDirectory() as folder:
            frame.to_csv(f"{folder}/tickets.csv", index=False)
            subprocess.run([racflow.binary(), "init", "tickets.csv"], cwd=folder, check=True, capture_output=True)
            with racflow.Pipeline(f"{folder}/pipeline.hcl", state=folder, embedder="hashing", held_out=0) as pipeline:
                self.assertEqual(pipeline.run(frame)["answer"].tolist(), frame["queue"].tolist())
                with self.assertLogs("racflow", "WARNING") as logged:
                    self.assertEqual(pipeline.eval(frame).accuracy, 1)
                self.assertIn("12 of 12 rows of the input are in knowledge", logged.output[0])
        self.assertEqual(racflow.__version__.count("."), 2)

    def test_passages(self) -> None:
        question = "How long does the gateway wait when it is shut down?"
        with helper.pipeline(file=helper.ROOT / "pipelines" / "contextual.hcl") as pipeline:
            result = pipeline.ask(question)
            self.assertIn("gateway", result.passages[0]["id"])
            self.assertIn("20 passages", repr(result))
            self.assertEqual(pipeline.run([question])[0].passages, result.passages)
            evaluation = pipeline.eval([{"text": question, "gold": [result.passages[0]["id"]]}])
            self.assertEqual([stage["mrr"] for stage in evaluation.json["retrieval"]["stages"]][-1], 1)


class TestErrors(unittest.TestCase):
    def test_mistakes_of_the_file_have_a_place(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "p.hcl")
            path.write_text('pipeline "p" {\n  elect "x" {\n    flag = "confidense < 1"\n  }\n}\n')
            with self.assertRaises(racflow.PipelineError) as caught:
                racflow.Pipeline(path, state=folder).answer("x")
            found = {one.summary: one for one in caught.exception.diagnostics}["Invalid rule"]
            self.assertEqual((found.severity, found.filename, found.line, found.column), ("error", str(path), 3, 13))
            self.assertIn(f"{path}:3:13: Invalid rule", str(caught.exception))
            with self.assertRaises(racflow.PipelineError) as caught:
                racflow.Pipeline(path, state=folder).eval()
            self.assertTrue(caught.exception.diagnostics)

    def test_what_is_no_mistake_of_the_file(self) -> None:
        with self.assertRaisesRegex(racflow.PipelineError, "no such file"):
            helper.pipeline(file="/nowhere.hcl").start()
        with self.assertRaisesRegex(racflow.PipelineError, "unknown flag|nowhere"):
            helper.pipeline(pipeline="nowhere").start()
        with mock.patch.dict("os.environ", RACFLOW_BINARY="/nowhere"), self.assertRaisesRegex(racflow.Error, "cannot be started"):
            helper.pipeline().start()

    def test_a_stage_that_fails(self) -> None:
        with _service(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}")) as url:
            with helper.pipeline(model="m", base_url=url, election="soft", set={"sample.llm.on_error": "fail"}) as pipeline:
                with self.assertRaises(racflow.ItemError) as caught:
                    pipeline.answer("hello")
                self.assertEqual(caught.exception.stage, "sample.llm")
                (result,) = pipeline.run(["hello"])
                self.assertEqual(result.error and result.error.stage, "sample.llm")

    def test_cancelling_ends_the_call_that_is_under_way(self) -> None:
        asked, ended = threading.Semaphore(0), threading.Semaphore(0)

        def hang(connection: socketserver.socket) -> None:  # type: ignore[name-defined]
            asked.release()
            connection.recv(1)  # until the other side goes
            ended.release()

        async def cancel(pipeline: racflow.Pipeline) -> None:
            async def consume() -> None:
                async for _ in pipeline.arun(iter(["hello"])):
                    pass

            for work in (pipeline.aanswer("hello"), pipeline.aask("hello"), pipeline.arun(["hello"]), consume()):
                task = asyncio.ensure_future(work)
                self.assertTrue(await asyncio.to_thread(asked.acquire, timeout=helper.DEADLINE))
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertTrue(await asyncio.to_thread(ended.acquire, timeout=helper.DEADLINE))

        with _service(hang) as url, helper.pipeline(model="m", base_url=url, election="soft", set={"sample.llm.probe": False}) as pipeline:
            asyncio.run(cancel(pipeline))

    def test_responses_in_any_pieces(self) -> None:
        chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na\nbc\n\r\n1\r\nd\r\n0\r\n\r\n"
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\na\nbc\nd"
        for raw, reusable in ((chunked, True), (whole, False)):
            for size in range(1, len(raw) + 1):
                reply, lines = _http.Reply(), []
                for start in range(0, len(raw), size):
                    self.assertFalse(reply.complete)
                    lines += reply.feed(raw[start:start + size])
                self.assertEqual((lines, reply.complete, reply.reusable), ([b"a", b"bc", b"d"], True, reusable))


def _failing() -> Iterator[str]:
    yield "a"
    raise ConnectionError("source")


def _texts(column: pandas.Series[str]) -> list[str | None]:
    return [text if isinstance(text, str) else None for text in column]


@contextlib.contextmanager
def _service(handle) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """Runs a service of a language model that does with each request what handle does."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            handle(self.connection)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, mock.patch.dict("os.environ", OPENAI_API_KEY="k"):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    unittest.main()
