"""The examples of the wire: a request and a reply of every method, which racflow's own tests replay, too."""
import pathlib
import tempfile
import unittest

from google.protobuf import text_format

from racflow_plugin import _wire
from tests import reference
from tests.wire import METHODS, serving

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "proto" / "testdata"
STAGES = {stage.kind: stage.name for stage in reference.plugin.stages}
STORE = ("OpenCollection", "Attach", "Put", "Delete", "Commit", "Search", "Get", "Scan", "ListCollections", "Drop")


def example(name: str, cls):
    return text_format.Parse((EXAMPLES / f"{name}.txtpb").read_text("utf-8"), cls())


def normal(reply):
    """A reply without the columns of samples that say nothing: they may be absent."""
    if "rows" in reply.DESCRIPTOR.fields_by_name:
        for name in ("voter", "accepted", "input_tokens", "output_tokens"):
            if not any(getattr(reply.rows.samples, name)):
                reply.rows.samples.ClearField(name)
        if not reply.rows.samples.offsets:
            reply.rows.ClearField("samples")
    return reply


class Examples(unittest.TestCase):
    maxDiff = None

    def replay(self, client, name: str, method: str = "", **options):
        method = method or name
        _, request, reply = METHODS[method]
        want, got = normal(example(name + ".reply", reply)), normal(client.call(method, example(name + ".request", request), **options))
        self.assertEqual(str(want), str(got), name)

    def test_work(self):
        for kind, names in {"chunk": ["Chunk"], "enrich": ["Enrich"], "rerank": ["Rerank"], "prompt": ["Prompt"], "elect": ["Elect"],
                            "sample": ["Sample", "Sample-pending", "Sample-collected"], "store": STORE}.items():
            with serving(reference.plugin, kind, STAGES[kind]) as client:
                for name in names:
                    self.replay(client, name, name.split("-")[0])

    def test_learning(self):
        with tempfile.TemporaryDirectory() as folder, serving(reference.plugin, "embed", "length", state_dir=folder) as client:
            self.replay(client, "Fit")
            self.assertEqual("my card is gone is card_lost\n", (pathlib.Path(folder) / "learnt").read_text())
            self.replay(client, "Embed")

    def test_what_a_stage_is(self):
        with serving(reference.plugin) as client:
            for name in ("Describe", "Validate", "Alive"):
                self.replay(client, name)
            _, request, reply = METHODS["Configure"]
            want = example("Configure.reply", reply)
            want.dimension = 0  # of embedders alone
            want.sparse = False  # this package takes vectors as they are
            self.assertEqual(str(want), str(client.call("Configure", example("Configure.request", request))))

    def test_all_methods_are_answered(self):
        self.assertEqual({path.name.split(".")[0].split("-")[0] for path in EXAMPLES.glob("*.request.txtpb")},
                         set(METHODS) | {name for name, *_ in _wire.methods("Host")})


if __name__ == "__main__":
    unittest.main()
