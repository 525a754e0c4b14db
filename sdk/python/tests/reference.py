"""A stage of each kind, which does what the reference of racflow's own tests does: sdk/wire/reference_test.go."""
import typing

from racflow_plugin import (
    Addition, ArgumentError, Attached, AttachedField, Chunk, Collection, Draw, Entry, Hit, Hits, Invalid, Message, Page, Pending, Plugin, Prompt, Ranked, Sample,
    Answer, Transient, Verdict, argument,
)

plugin = Plugin("reference", "1.0.0")


class Everything:
    precision: typing.Optional[typing.Literal["float32", "int8"]] = argument(None, doc="Of the vectors; chosen by the processor where it is not given.")
    sharpness: float = argument(1.0, above=0, doc="How much the first candidate counts.")
    dimension: typing.ClassVar = 2
    draw: typing.ClassVar = Draw(2, parts=2, shared=True, seed=7)

    def fingerprint(self):
        return "of the model"

    def resolved(self):
        return {"precision": "float32"}


@plugin.chunk("halves", revision="1")
class Halves(Everything):
    """Cuts a document in two."""

    def chunk(self, documents):
        out = []
        for document in documents:
            half = len(document.text) // 2
            out.append([Chunk(0, half, meta={"part": 1}), Chunk(half, len(document.text), header=(0, 2))] if half else [])
        return out


@plugin.enrich("place")
class Place(Everything):
    """Says where a passage stands."""

    def enrich(self, passages):
        return [Addition(f"{p.document.id} from byte {p.start}", ["what is " + p.text]) for p in passages]


@plugin.embed("length", fit_reads=["text"], batch=64)
class Length(Everything):
    """Embeds the length of a text."""

    def open(self, setup):
        self.dir = setup.state_dir

    def embed(self, texts):
        return [[.6, .8] if text else [0, 0] for text in texts]

    def fit(self, rows):
        (self.dir / "learnt").write_text("".join(f"{row.text} is {row.label}\n" for row in rows))


@plugin.store("shelf", filters=True, attaches="collection")
class Shelf(Everything):
    """Keeps two entries."""

    collection: str = argument("", doc="One that another program makes.")
    kept = [Entry("a", "one", "x", meta={"page": 1}, hash=b"\x01\x02"), Entry("b", "two", "y", context="of numbers")]

    def open_collection(self, name, dimension, analyzer):
        return Collection("", 2, 2, b"of the engine")

    def attach(self):
        return Attached("docs", "docs_v2", 2, 2, labels=True,
                        fields=[AttachedField("id", "pk", "the primary key"), AttachedField("text", "content", "named in the file")],
                        notes=["It is not searched by words: no field has an index for that."])

    def put(self, name, entries):
        return {i: Invalid("the label is too long: at most 5 bytes") for i, entry in enumerate(entries) if len(entry.label) > 5}

    def delete(self, name, ids):
        pass

    def commit(self, name, note):
        pass

    def drop(self, name):
        raise Transient("another process writes it", retry_after=2)

    def search(self, name, search, queries):
        return [Hits(dense=[Hit("b", .5, entry=self.kept[1]), Hit("a", .25)]) for _ in queries]

    def get(self, name, ids):
        return [next((entry for entry in self.kept if entry.id == id), None) for id in ids]

    def scan(self, name, scan):
        return Page(self.kept, "after b")

    def list_collections(self):
        return [Collection("k", 2, 2)]


@plugin.rerank("reverse")
class Reverse(Everything):
    """Turns the order round."""

    def rerank(self, rows):
        return [[Ranked(at, at) for at in reversed(range(len(row.candidates)))] for row in rows]


@plugin.prompt("ask", reads=["text", "labels"])
class Ask(Everything):
    """Asks for one of the labels."""

    def prompt(self, rows):
        return [Prompt(messages=[Message("system", "Answer with a label.", shared=True), Message("user", row.text)],
                       labels=row.labels, none="none", fields=["label"]) for row in rows]


@plugin.sample("first", reads=["text", "candidates"], network=True, pends=True)
class First(Everything):
    """Votes for the first candidate."""

    def validate(self):
        if self.precision == "int8" and self.sharpness > 9:
            raise ArgumentError("sharpness", "too much for int8: at most 9")

    def sample(self, rows):
        if rows[0].text == "later":
            return Pending("batch-17", poll_after=3600, note="2 of 9 rows are done")
        return [Sample([Answer(row.candidates[0].label, .75)], input_tokens=9, output_tokens=1, distance=.5) if row.candidates
                else Transient("there is nothing to vote for", retry_after=1) for row in rows]

    def collect(self, handle, rows):
        return [f"{handle} of {row.id}" for row in rows]


@plugin.elect("most")
class Most(Everything):
    """Takes the first answer."""

    def elect(self, rows):
        return [Verdict(row.samples[0].answers[0].label, agreement=1, confidence=.75, unknown=.25, labels=[("card_lost", .75)]) if row.samples else Verdict(reason="nobody has voted") for row in rows]
