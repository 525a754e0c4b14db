import errno
import math
import os
import pathlib
import tempfile
import unittest
import unittest.mock

from racflow_plugin import ArgumentError, Attached, DenseStore, Entry, Hit, Hits, Invalid, Plugin, Query, Scan, Search, Setup, StageError, Transient, _wire, argument
from racflow_plugin._store import filter_of, fuse
from tests.wire import serving

try:
    import numpy
except ImportError:
    numpy = None


def leaf(op, field, *values, key=""):
    named = {str: "text", float: "number", int: "number", bool: "truth"}
    return _wire.Filter(op="FILTER_OP_" + op, field="FIELD_" + field, key=key, values=[_wire.Value(**{named[type(v)]: v}) for v in values])


class Filters(unittest.TestCase):
    def test_match(self):
        entry = ("doc-ü", "x", {"page": 3.0, "lang": "de", "draft": False})
        for message, want in [
            (leaf("IN", "LABEL", "y", "x"), True), (leaf("IN", "ID", "doc"), False), (leaf("PREFIX", "ID", "doc-"), True),
            (leaf("LESS", "META", 4, key="page"), True), (leaf("LESS", "META", 3, key="page"), False), (leaf("LESS_EQUAL", "META", 3, key="page"), True),
            (leaf("GREATER", "META", "d", key="lang"), True), (leaf("GREATER_EQUAL", "META", "df", key="lang"), False),
            (leaf("GREATER", "META", "a", key="page"), False), (leaf("IN", "META", "3", key="page"), False), (leaf("IN", "META", False, key="draft"), True),
            (leaf("IN", "META", 0, key="draft"), False), (leaf("IN", "META", "a", key="missing"), False),
            (_wire.Filter(op="FILTER_OP_NOT", parts=[leaf("IN", "META", "a", key="missing")]), True),
            (_wire.Filter(op="FILTER_OP_AND"), True), (_wire.Filter(op="FILTER_OP_OR"), False),
            (_wire.Filter(op="FILTER_OP_AND", parts=[leaf("IN", "LABEL", "x"), leaf("IN", "LABEL", "y")]), False),
            (_wire.Filter(op="FILTER_OP_OR", parts=[leaf("IN", "LABEL", "x"), leaf("IN", "LABEL", "y")]), True),
        ]:
            with self.subTest(message=str(message)):
                self.assertIs(filter_of(message).match(*entry), want)

    def test_refused(self):
        deep = leaf("IN", "ID", "a")
        for _ in range(40):
            deep = _wire.Filter(op="FILTER_OP_NOT", parts=[deep])
        for message in [deep, _wire.Filter(op=77), _wire.Filter(op="FILTER_OP_NOT"), leaf("LESS", "ID", "a", "b"), leaf("LESS", "META", True, key="a"),
                        leaf("PREFIX", "META", 1, key="a"), leaf("IN", "LABEL", 1), leaf("IN", "META", math.nan, key="a"),
                        _wire.Filter(op="FILTER_OP_IN", field="FIELD_ID", values=[_wire.Value()]), _wire.Filter(op="FILTER_OP_IN", values=[_wire.Value(text="a")])]:
            with self.subTest(message=str(message)[:80]), self.assertRaises(Invalid):
                filter_of(message)


class Fusion(unittest.TestCase):
    hits = Hits(dense=[Hit("a", .9), Hit("b", .8, 2)], lexical=[Hit("c", lexical=4), Hit("b", .8, 2)])

    def ranks(self, *how):
        return [(found.id, round(found.score, 6)) for found in fuse(self.hits, *how)]

    def test_methods(self):
        self.assertEqual(self.ranks("weighted", .5, 0, 9), [("b", .65), ("c", .5), ("a", .45)])
        self.assertEqual(self.ranks("rrf", 0, 60, 2), [("b", round(2 / 62, 6)), ("a", round(1 / 61, 6))])

    def test_alone_and_ties(self):
        dense = Hits(dense=[Hit("b", .5), Hit("a", .5)])
        self.assertEqual([f.id for f in fuse(dense, "weighted", .1, 0, 9)], ["a", "b"])
        self.assertEqual([f.score for f in fuse(dense, "weighted", .1, 0, 9)], [.5, .5])
        self.assertEqual([round(f.score, 3) for f in fuse(Hits(lexical=[Hit("b", lexical=8), Hit("a", lexical=2)]), "weighted", .9, 0, 9)], [1, .25])
        self.assertEqual(fuse(Hits(), "rrf", 0, 60, 9), [])


@unittest.skipUnless(numpy, "numpy is not installed")
class Dense(unittest.TestCase):
    class Exact(DenseStore):
        def scores(self, vectors, query):
            return vectors @ query

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = self.opened()

    def opened(self, name="k"):
        store = self.Exact()
        store.open(Setup(state_dir=self.folder))
        self.collection = store.open_collection(name, 2, "")
        return store

    def fill(self):
        self.store.put("k", [Entry("b", "two", "y", vector=[0, 2]), Entry("a", "one", "x", "c", {"page": 1}, [1, 0], b"\x01"), Entry("c", vector=[0, 0])])

    def test_commit(self):
        self.fill()
        self.assertEqual(self.store.get("k", ["a"]), [None])
        self.store.commit("k", b"note")
        self.store.put("k", [Entry("d", vector=[1, 1])])
        self.store.delete("k", ["a", "unknown"])
        self.store.close()
        self.store = self.opened()  # what was not committed is gone
        self.assertEqual((self.collection.entries, self.collection.note), (3, b"note"))
        got, = self.store.get("k", ["a"])
        self.assertEqual((got.text, got.label, got.context, got.meta, got.hash, got.vector), ("one", "x", "c", {"page": 1}, b"\x01", None))
        self.store.delete("k", ["a"])
        self.store.commit("k", b"")
        self.assertEqual([c.entries for c in self.opened().list_collections()], [2])
        self.store.drop("k")
        self.store.drop("k")
        self.assertEqual(self.store.list_collections(), [])

    def test_one_process_changes_a_collection(self):
        other = self.opened()
        self.fill()
        for change in (lambda: other.put("k", [Entry("z", vector=[1, 0])]), lambda: other.delete("k", ["a"]), lambda: other.commit("k", b""), lambda: other.drop("k")):
            with self.assertRaisesRegex(Transient, "another process changes collection k"):
                change()
        self.store.commit("k", b"")
        other.put("k", [Entry("z", vector=[1, 0])])
        other.commit("k", b"")
        self.opened()
        self.assertEqual(self.collection.entries, 4)

    def test_no_locks(self):
        with unittest.mock.patch("racflow_plugin._densestore.fcntl.flock", side_effect=OSError(errno.ENOLCK, "No locks available")):
            with self.assertRaisesRegex(StageError, "cannot be locked.*RACFLOW_NOLOCK=1"):
                self.store.delete("k", ["a"])
            with unittest.mock.patch.dict(os.environ, RACFLOW_NOLOCK="1"):
                self.fill()
                self.store.commit("k", b"")
        self.opened()
        self.assertEqual(self.collection.entries, 3)

    def test_damaged(self):
        (self.folder / "collections" / "other.json").write_text("{")
        self.assertEqual([c.name for c in self.store.list_collections()], ["k"])

    def test_search(self):
        self.fill()
        self.store.commit("k", b"")
        only = filter_of(leaf("IN", "LABEL", "x"))
        hits = self.store.search("k", Search("dense", 2, True), [Query("", [0, 3], None), Query("", [0, 3], only), Query("", [0, 0], None), Query("", [1], None)])
        self.assertEqual([[(h.id, h.dense) for h in one.dense] for one in hits[:3]], [[("b", 1), ("a", 0)], [("a", 0)], []])
        self.assertIsInstance(hits[3], Invalid)

    def test_scan(self):
        self.fill()
        self.store.commit("k", b"")
        page = self.store.scan("k", Scan("", 2, [], True, True))
        self.assertEqual(([e.id for e in page.entries], page.next, list(page.entries[1].vector)), (["a", "b"], "b", [0, 2]))
        page = self.store.scan("k", Scan(page.next, 2, [], False, False))
        self.assertEqual(([e.id for e in page.entries], page.next), (["c"], ""))
        self.assertEqual([e.id for e in self.store.scan("k", Scan("", 0, ["y"], False, False)).entries], ["b"])

    def test_refused(self):
        for entries in ([Entry("", vector=[1, 0])], [Entry("a", vector=[1])], [Entry("a")], [Entry("a", vector=[1, math.nan])]):
            with self.assertRaises(Invalid):
                self.store.put("k", [Entry("z", vector=[1, 0]), *entries])
        self.store.commit("k", b"")
        self.assertEqual(self.store.get("k", ["z"]), [None])
        for what in (lambda: self.store.search("k", Search("hybrid", 2, True), []), lambda: self.store.open_collection("l", 2, "english"),
                     lambda: self.store.open_collection("k", 3, ""), lambda: self.store.open_collection("", 2, ""), lambda: self.store.get("unknown", [])):
            with self.assertRaises(Invalid):
                what()

    def test_served(self):
        plugin = Plugin("test", "1.0.0")
        plugin.store("exact", filters=True)(self.Exact)
        with serving(plugin, "store", "exact", state_dir=str(self.folder)) as client:
            client.call("OpenCollection", _wire.OpenCollectionRequest(collection="k", dimension=2))
            vectors = numpy.array([[1, 0], [0, 1]], "<f4").tobytes()
            client.call("Put", _wire.PutRequest(collection="k", rows=_wire.Rows(n=2, id=["a", "ü"], text=["one", "two"], label=["x", "y"], dimension=2, vectors=vectors)))
            client.call("Commit", _wire.CommitRequest(collection="k", note=b"n"))
            reply = client.call("Search", _wire.SearchRequest(
                collection="k", mode="MODE_DENSE", fusion="FUSION_WEIGHTED", dense_weight=.3, top_k=1, num_candidates=5, texts=True,
                queries=_wire.Rows(n=2, text=["", ""], dimension=2, vectors=vectors), filters=[leaf("IN", "LABEL", "y")], query_filter=[1, 0]))
        got = reply.rows.candidates
        self.assertEqual((list(got.offsets), got.ids, list(got.id_bytes), list(got.names), list(got.text), list(got.score)),
                         ([0, 1, 2], "üü", [2, 2], ["y"], ["two", "two"], [0, 1]))

    def test_attached(self):
        class Theirs(DenseStore):
            table: str = argument("", doc="A table of somebody else's.")

            def attach(self):
                if self.table != "docs":
                    raise ArgumentError("table", f"there is no table {self.table}")
                return Attached("docs", "1", 2, 3, notes=["It is small."])

        for config, want in {'{"table": "docs"}': ("docs", ""), '{"table": "dcos"}': ("", "there is no table dcos")}.items():
            plugin = Plugin("test", "1.0.0")
            plugin.store("theirs", attaches="table")(Theirs)
            with serving(plugin, "store", "theirs", config, state_dir=str(self.folder)) as client:
                reply = client.call("Attach", _wire.AttachRequest())
            self.assertEqual((reply.attached.name, "".join(error.message for error in reply.errors), reply.HasField("failure")), (*want, False))
        with self.assertRaisesRegex(TypeError, "no argument of type str"):
            Plugin("test", "1.0.0").store("theirs", attaches="no_argument")(Theirs)
        with self.assertRaisesRegex(TypeError, "a store with a method attach"):
            Plugin("test", "1.0.0").store("exact", attaches="table")(self.Exact)


if __name__ == "__main__":
    unittest.main()
