import dataclasses
import datetime
import json
import pathlib
import typing
import unittest

from racflow_plugin import ArgumentError, Plugin, argument


def stage(**fields):
    """The stage of a class with the fields, each an annotation or an annotation and a value."""
    body = {"__annotations__": {name: f[0] if isinstance(f, tuple) else f for name, f in fields.items()}, "sample": lambda self, rows: []}
    body.update({name: f[1] for name, f in fields.items() if isinstance(f, tuple)})
    plugin = Plugin("test", "1.0.0")
    plugin.sample("it")(type("It", (), body))
    return plugin.stages[0]


@dataclasses.dataclass
class Block:
    url: str = argument(doc="Where it is.")
    tries: int = argument(3, min=1)


class Arguments(unittest.TestCase):
    def test_types(self):
        for hint, kind, given, want in [
            (str, "STRING", "a", "a"), (int, "INT", 3, 3), (float, "FLOAT", 2, 2.0), (bool, "BOOL", True, True),
            (datetime.timedelta, "DURATION", "1h1m1.5s", datetime.timedelta(seconds=3661.5)), (datetime.timedelta, "DURATION", "-2ms", datetime.timedelta(milliseconds=-2)),
            (pathlib.Path, "PATH", "/a", pathlib.Path("/a")), (list[str], "STRING_LIST", ["a"], ["a"]), (list[float], "NUMBER_LIST", [1, .5], [1.0, .5]),
            (dict[str, str], "STRING_MAP", {"a": "b"}, {"a": "b"}), (dict[str, float], "NUMBER_MAP", {"a": 1}, {"a": 1.0}),
            (dict[str, list[str]], "LIST_MAP", {"a": ["b"]}, {"a": ["b"]}), (typing.Literal["x", "y"], "STRING", "y", "y"),
            (typing.Optional[int], "INT", 3, 3), (int | None, "INT", None, None), (Block, "BLOCK", {"url": "u"}, Block(url="u", tries=3)),
        ]:
            with self.subTest(hint=hint):
                value = (hint, None) if hint == int | None else hint
                made = stage(x=value)
                self.assertEqual(made.described[0].type, kind)
                self.assertEqual(made.make(json.dumps({"x": given}).encode()).x, want)

    def test_what_is_wrong(self):
        for fields, given, want in [
            ({"x": str}, {}, {"x": "it is required"}),
            ({"x": (str, "")}, {"y": 1}, {"y": "there is no such argument"}),
            ({"x": str}, {"x": 1}, {"x": "it must be of type string"}),
            ({"x": int}, {"x": 1.5}, {"x": "it must be of type int, a whole number"}),
            ({"x": int}, {"x": True}, {"x": "it must be of type int, a whole number"}),
            ({"x": bool}, {"x": 1}, {"x": "it must be of type bool"}),
            ({"x": datetime.timedelta}, {"x": "1 hour"}, {"x": 'it must be of type duration, such as "1m30s"'}),
            ({"x": (int, argument(min=1, below=9))}, {"x": 9}, {"x": "it must be at least 1 and below 9, and is 9"}),
            ({"x": (int, argument(secret=True, min=1))}, {"x": 0}, {"x": "it must be at least 1"}),
            ({"x": (list[float], argument(above=0))}, {"x": [1, 0]}, {"x[1]": "it must be above 0, and is 0"}),
            ({"x": (str, argument(choices=["a", "b"]))}, {"x": "c"}, {"x": "it must be one of a, b, and is 'c'"}),
            ({"x": (str, argument(choices=["a"], secret=True))}, {"x": "c"}, {"x": "it must be one of a"}),
            ({"x": (str, argument(max_length=2))}, {"x": "abc"}, {"x": "its length must be from 0 to 2, and is 3"}),
            ({"x": (str, argument("", conflicts=["y"])), "y": (str, "")}, {"x": "a", "y": "b"}, {"x": "it cannot be given beside y: leave one of them out"}),
            ({"x": (str, argument("", requires=["y"])), "y": (str, "")}, {"x": "a"}, {"x": "it means nothing without y: give both, or neither"}),
            ({"x": Block}, {"x": {"tries": 0}}, {"x[tries]": "it must be at least 1, and is 0", "x[url]": "it is required"}),
            ({"x": dict[str, list[str]]}, {"x": {"a": [1]}}, {"x[a][0]": "it must be of type map(list(string))"}),
            ({"x": str, "y": str}, {}, {"x": "it is required", "y": "it is required"}),
        ]:
            with self.subTest(given=given), self.assertRaises(ArgumentError) as raised:
                stage(**fields).make(json.dumps(given).encode())
            self.assertEqual({e.argument + "".join(f"[{step}]" for step in e.path): e.args[0] for e in raised.exception._all()}, want)

    def test_description(self):
        message = stage(x=(typing.Annotated[int, "How many."], 5), y=(list[str], argument(["a"], since="0.2.0", affects_output=False))).info.arguments
        self.assertEqual((message[0].doc, message[0].default_json, message[0].required), ("How many.", "5", False))
        self.assertEqual((message[1].default_json, message[1].since, message[1].output_unaffected), ('["a"]', "0.2.0", True))
        self.assertEqual(stage(x=(datetime.timedelta, datetime.timedelta(seconds=90))).info.arguments[0].default_json, '"90s"')

    def test_defaults_are_not_shared(self):
        made = stage(x=(list[str], argument(["a"])))
        made.make(b"").x.append("b")
        self.assertEqual(made.make(b"").x, ["a"])

    def test_inherited(self):
        class Base:
            x: int = argument(1)

            def sample(self, rows):
                return []

        class Own(Base):
            y: int = argument(2)

        plugin = Plugin("test", "1.0.0")
        plugin.sample("own")(Own)
        self.assertEqual([a.name for a in plugin.stages[0].info.arguments], ["x", "y"])

    def test_mistakes_of_a_program(self):
        class NoMethod:
            pass

        class Learns:
            def chunk(self, documents):
                return []

            def fit(self, rows):
                pass

        plugin = Plugin("test", "1.0.0")
        for what, make, say in [
            ("type", lambda: stage(x=bytes), "no argument can have"), ("default", lambda: stage(x=(int, argument(0.5))), "the default of It.x"),
            ("names another", lambda: stage(x=(str, argument("", requires=["z"]))), "'z', which is no argument"),
            ("no method", lambda: plugin.rerank("it")(NoMethod), "without a method rerank"), ("store", lambda: plugin.store("it")(NoMethod), "without a method open_collection"),
            ("column", lambda: plugin.chunk("it", reads=["texts"])(Learns), "reads 'texts'"), ("fit", lambda: plugin.chunk("it")(Learns), "does not learn"),
            ("pends", lambda: plugin.enrich("it", pends=True)(type("E", (), {"enrich": print})), "goes with a method collect"),
        ]:
            with self.subTest(what), self.assertRaisesRegex(TypeError, say):
                make()


if __name__ == "__main__":
    unittest.main()
