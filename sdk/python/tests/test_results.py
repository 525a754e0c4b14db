import array
import unittest

from racflow_plugin import (
    Addition, Answer, Candidate, Chunk, Invalid, Plugin, Prompt, Ranked, Sample, Transient, Verdict, _wire, each, normalize,
)
from racflow_plugin._columns import characters, utf8
from racflow_plugin._rows import Rows
from tests.wire import serving

try:
    import numpy
except ImportError:
    numpy = None

CANDIDATES = {"offsets": [0, 2, 3], "names": ["x", "ü"], "label": [0, 1, 0], "ids": "aßc", "id_bytes": [1, 2, 1], "score": [3, 2, 1], "dense": [.5, .25, 0],
              "text": ["one", "two", "three"], "meta": [b'{"page":1}', b"", b""]}


def rows(**more):
    return _wire.Rows(n=2, id=["1", "2"], text=["first", "second"], candidates=CANDIDATES, **more)


def stage(kind: str, result, **options):
    """A plugin whose stage returns the same for every batch; a function is called with it."""
    def work(self, given):
        return result(given) if callable(result) else result
    plugin = Plugin("test", "1.0.0")
    getattr(plugin, kind)("it", **options)(type("It", (), {kind: work, "dimension": 2, "__doc__": "It."}))
    return plugin


def ask(kind: str, result, request=None, **options):
    """The reply to a call of a stage that returns the result."""
    if request is None:
        request = {"texts": ["first", "second"]} if kind == "embed" else {"rows": rows()}
    name = kind.capitalize()
    with serving(stage(kind, result, **options), kind, "it") as client:
        return client.call(name, getattr(_wire, name + "Request")(**request))


def failures(reply) -> dict:
    return {error.row: error.failure.message for error in reply.errors}


class Results(unittest.TestCase):
    def test_samples(self):
        for result, want in [
            (["a", None], [[{"a": 1}], []]), ([{"a": .25, "b": .75}, []], [[{"b": .75, "a": .25}], []]), ([["a", "a"], ["b"]], [[{"a": 1}, {"a": 1}], [{"b": 1}]]),
            ([Answer("a", 2), Sample([Answer("ü")])], [[{"a": 2}], [{"ü": 1}]]), (("\ud800", ""), [[{"\ufffd": 1}], [{"": 1}]]),
        ]:
            got = ask("sample", list(result)).rows.samples
            every = [dict((got.names[got.answer[k]], got.weight[k]) for k in range(a, b)) for a, b in zip(got.answer_offsets, got.answer_offsets[1:])]
            self.assertEqual([every[a:b] for a, b in zip(got.offsets, got.offsets[1:])], want)

    def test_rankings(self):
        for result, want in [
            ([[.1, .9], [.5]], [[(1, .9), (0, .1)], [(0, .5)]]), ([[1, 1], [1]], [[(0, 1), (1, 1)], [(0, 1)]]),
            ([[Ranked(1, 4)], []], [[(1, 4)], []]), ([[(1, 4), (0, 3)], [(0, 1)]], [[(1, 4), (0, 3)], [(0, 1)]]), ([array.array("d", [1, 2]), [0]], [[(1, 2), (0, 1)], [(0, 0)]]),
        ]:
            got = ask("rerank", result).rows.rankings
            self.assertEqual([[(got.candidate[k], round(got.score[k], 6)) for k in range(a, b)] for a, b in zip(got.offsets, got.offsets[1:])], want)

    def test_prompts_and_verdicts(self):
        got = ask("prompt", ["ask", [Prompt("a", passages=[]), Prompt("b", labels=["x", "y"])]]).rows.prompts
        self.assertEqual((list(got.offsets), list(got.text), list(got.names)), ([0, 1, 3], ["ask", "a", "b"], ["x", "y"]))
        self.assertEqual([a.HasField("passages") for a in got.allowed], [False, True, False])
        got = ask("elect", [Verdict("a", .5), None]).rows.verdicts
        self.assertEqual((list(got.answer), list(got.reason), list(got.confidence)), (["a", ""], ["", "the election gave no answer"], []))

    def test_chunks_count_characters(self):
        request = {"rows": _wire.Rows(n=2, id=["1", "2"], text=["aü𝄞b", "ab"])}
        got = ask("chunk", [[(0, 2), Chunk(2, 4, header=(1, 2), meta={"a": 1})], []], request).rows.chunks
        self.assertEqual([list(getattr(got, name)) for name in ("start", "end", "header_start", "header_end", "meta")], [[0, 3], [3, 8], [0, 1], [0, 3], [b"", b'{"a":1}']])
        passage = ask("enrich", lambda passages: [p.text for p in passages], {"rows": _wire.Rows(n=1, id=["1"], text=["aü𝄞b"], chunks={
            "offsets": [0, 2], "start": [0, 3], "end": [3, 8], "header_start": [0, 1], "header_end": [0, 3]})})
        self.assertEqual(list(passage.rows.context), ["aü", "ü𝄞b"])
        self.assertEqual((characters("aü𝄞b", [8, 3]), utf8("aü𝄞b", [4, 2])), ({3: 2, 8: 4}, {2: 3, 4: 8}))

    def test_additions(self):
        request = {"rows": _wire.Rows(n=1, id=["1"], text=["one two"], chunks={"offsets": [0, 3], "start": [0, 0, 4], "end": [3, 3, 7]})}
        got = ask("enrich", ["a", None, Addition(terms=["b", "c"])], request).rows
        self.assertEqual((got.n, list(got.context), list(got.terms.offsets), list(got.terms.term)), (3, ["a", "", ""], [0, 0, 0, 2], ["b", "c"]))

    def test_vectors(self):
        want = array.array("f", [.6, .8, 0, 0]).tobytes()
        results = [[[.6, .8], [0, 0]], [(.6, .8), None], [array.array("f", [.6, .8]), [0, 0]]]
        if numpy:
            results += [numpy.array([[.6, .8], [0, 0]]), [numpy.array([.6, .8], "f4"), None]]
        for result in results:
            self.assertEqual(ask("embed", result).rows.vectors, want)
        self.assertEqual(normalize([[3, 4], [0, 0]]), [[.6, .8], [0, 0]])

    def test_rows_that_fail_alone(self):
        nan = float("nan")
        documents = {"rows": _wire.Rows(n=2, id=["1", "2"], text=["ab", "ab"])}
        for kind, result, want, request in [
            ("sample", [ValueError("no"), "a"], "ValueError: no", None), ("sample", [7, "a"], "returned int for a row", None), ("sample", [{"a": "b"}, "a"], "ValueError", None),
            ("rerank", [[1, 2, 3], [1]], "3 scores for 2 candidates", None), ("rerank", [[(2, 1)], [1]], "candidate 2 of 2", None),
            ("rerank", [[(-1, 1)], [1]], "candidate -1 of 2", None), ("rerank", [[(1, 1), (1, 2)], [1]], "candidate 1 twice", None),
            ("rerank", [[nan, 1], [1]], "not a finite number", None), ("rerank", [None, [1]], "returned None", None),
            ("elect", ["a", None], "returned str", None), ("prompt", [None, "a"], "returned NoneType", None),
            ("chunk", [[(0, 3)], [(0, 2)]], "0 to 3 of 2", documents), ("chunk", [[(1, 1)], [(0, 2)]], "none is empty", documents),
            ("chunk", [[(1, 2), (0, 1)], [(0, 2)]], "0 to 1 of 2", documents), ("chunk", [[Chunk(0, 1, header=(0, 1))], []], "stands before its chunk", documents),
            ("chunk", [[Chunk(0, 1, meta={"a": nan})], []], "ValueError", documents),
            ("embed", [[1, 2, 3], [0, 1]], "dimension 3, not 2", None), ("embed", [Invalid("no"), [0, 1]], "no", None),
        ]:
            with self.subTest(kind=kind, result=result):
                reply = ask(kind, result, request)
                self.assertEqual(list(failures(reply)), [0], reply)
                self.assertIn(want, failures(reply)[0])
                self.assertEqual(reply.rows.n, 2)

    def test_calls_that_fail(self):
        for kind, result, want in [
            ("sample", ["a"], "1 results for 2 rows"), ("sample", None, "NoneType in the place of a list"), ("sample", "ab", "str in the place of a list"),
            ("sample", lambda rows: 1 / 0, "ZeroDivisionError: division by zero"), ("embed", [[1, 0]], "1 results for 2 rows"),
            ("sample", lambda rows: rows[0].vector, 'add it to reads=["vector"]'), ("sample", lambda rows: [row.text for row in rows], 'reads=["text"]'),
            ("sample", lambda rows: (_ for _ in ()).throw(SystemExit(3)), "SystemExit: 3"),
        ]:
            own = "Error: " in want or "Exit" in want  # of the stage: its stack is logged
            with self.subTest(kind=kind, want=want), self.assertLogs("racflow") if own else self.assertNoLogs("racflow"):
                reply = ask(kind, result)
                self.assertIn(want, reply.failure.message)
                self.assertFalse(reply.HasField("rows"))

    def test_each(self):
        def half(row):
            if row == 3:
                raise Transient("wait")
            return row / 2
        got = each(half, [2, 3, 4])
        self.assertEqual((got[0], type(got[1]), got[2]), (1, Transient, 2))


class Read(unittest.TestCase):
    def test_candidates(self):
        first, second = Rows(rows(), ["candidate_texts"])
        self.assertEqual([(c.id, c.label, c.text, c.score, c.dense, c.meta) for c in first.candidates], [("a", "x", "one", 3, .5, {"page": 1}), ("ß", "ü", "two", 2, .25, {})])
        self.assertEqual([(c.id, c.context) for c in second.candidates], [("c", "")])
        self.assertNotEqual(second.candidates[0].lexical, second.candidates[0].lexical)  # NaN
        self.assertIsInstance(second.candidates[0], Candidate)

    def test_vectors(self):
        packed = array.array("f", [1, 2, 3, 4]).tobytes()
        given = Rows(rows(dimension=2, vectors=packed), ["vector"])
        self.assertEqual([list(row.vector) for row in given], [[1, 2], [3, 4]])
        self.assertIsNone(Rows(rows(), ["vector"])[0].vector)
        with self.assertRaisesRegex(Invalid, "8 bytes for 2 rows of dimension 2"):
            Rows(rows(dimension=2, vectors=packed[:8]), ["vector"])[0].vector

    @unittest.skipUnless(numpy, "numpy is not installed")
    def test_arrays(self):
        packed = array.array("f", [1, 2, 3, 4]).tobytes()
        given = Rows(rows(dimension=2, vectors=packed), ["vector", "candidates"])
        self.assertEqual(given.vectors.tolist(), [[1, 2], [3, 4]])
        self.assertTrue(numpy.shares_memory(given.vectors, numpy.asarray(given[1].vector)))
        self.assertEqual(given[0].scores.tolist(), [3, 2])
        self.assertEqual(given[1].dense.tolist(), [0])
        self.assertTrue(numpy.isnan(given[1].lexical).all())
        self.assertEqual(Rows(rows(), ["vector"]).vectors.shape, (2, 0))

    def test_others(self):
        given = Rows(rows(labels=["x", "y"], drawn=[0, 3], rejected={"offsets": [0, 0, 1], "text": ["maybe"], "reason": ["unsure"]}, meta=[b'{"a":true}', b""]), ["labels", "meta"])
        self.assertEqual([(row.labels, row.drawn, row.rejected, row.meta) for row in given], [(["x", "y"], 0, [], {"a": True}), (["x", "y"], 3, [("maybe", "unsure")], {})])
        self.assertEqual([row.id for row in given[1:]], ["2"])
        with self.assertRaises(Invalid):
            Rows(_wire.Rows(n=3, id=["1"]), [])
        with self.assertRaises(Invalid):
            Rows(_wire.Rows(n=1, id=["1"], candidates={"offsets": [0, 2], "label": [0]}), ["candidates"]).candidates


if __name__ == "__main__":
    unittest.main()
