import threading
import typing
import unittest

import grpc

from racflow_plugin import Cancelled, Invalid, Plugin, Refused, StageError, Stopped, Transient, Unavailable, _wire
from racflow_plugin._context import Context
from tests.wire import serving


class Gate:
    """A stage whose calls wait until they are let through, or take no notice of anything."""

    entered: typing.ClassVar[threading.Semaphore]
    passed: typing.ClassVar[threading.Event]
    deaf = False

    def prompt(self, rows, context):
        Gate.entered.release()
        if Gate.deaf:
            Gate.passed.wait()
        else:
            over = threading.Event()
            context.when_over(over.set)
            threading.Thread(target=lambda: (Gate.passed.wait(), over.set()), daemon=True).start()
            over.wait()
            context.check()
        return [row.id for row in rows]


def gate() -> Plugin:
    Gate.entered, Gate.passed, Gate.deaf = threading.Semaphore(0), threading.Event(), False
    plugin = Plugin("test", "1.0.0")
    plugin.prompt("gate")(Gate)
    return plugin


REQUEST = _wire.PromptRequest(rows=_wire.Rows(n=1, id=["a"]))


class Calls(unittest.TestCase):
    def tearDown(self):
        if hasattr(Gate, "passed"):
            Gate.passed.set()

    def test_at_the_wrong_time(self):
        with serving(gate()) as client:
            with self.assertRaises(grpc.RpcError) as raised:
                client.call("Prompt", REQUEST)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
            self.assertIn("no sample stage 'gate'", client.configure("sample", "gate").errors[0].message)
            self.assertFalse(client.configure("prompt", "gate").errors)
            with self.assertRaises(grpc.RpcError) as raised:
                client.configure("prompt", "gate")
            self.assertEqual(raised.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
            with self.assertRaises(grpc.RpcError) as raised:  # of a kind that the plugin does not offer
                client.call("Sample", _wire.SampleRequest())
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_256_at_a_time_and_signs_of_life(self):
        with serving(gate(), "prompt", "gate") as client:
            calls = [client.method("Prompt").future(_wire.PromptRequest(rows=_wire.Rows(n=1, id=[str(i)]))) for i in range(_wire.MOST_CALLS)]
            for _ in calls:
                self.assertTrue(Gate.entered.acquire(timeout=60))
            self.assertEqual(client.call("Alive", _wire.AliveRequest()).overdue, 0)
            Gate.passed.set()
            self.assertEqual([call.result().rows.prompts.text[0] for call in calls], [str(i) for i in range(len(calls))])

    def test_cancelled_calls_end(self):
        with serving(gate(), "prompt", "gate") as client:
            call = client.method("Prompt").future(REQUEST)
            self.assertTrue(Gate.entered.acquire(timeout=60))
            call.cancel()
            while client.call("Alive", _wire.AliveRequest()).overdue:
                pass
            with self.assertRaises(grpc.RpcError) as raised:
                client.call("Prompt", REQUEST, timeout=.1)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
            while client.call("Alive", _wire.AliveRequest()).overdue:
                pass

    def test_overdue_calls_are_counted(self):
        with serving(gate(), "prompt", "gate") as client:
            Gate.deaf = True
            call = client.method("Prompt").future(REQUEST)
            self.assertTrue(Gate.entered.acquire(timeout=60))
            call.cancel()
            while client.call("Alive", _wire.AliveRequest()).overdue != 1:
                pass
            Gate.passed.set()
            while client.call("Alive", _wire.AliveRequest()).overdue:
                pass

    def test_codes(self):
        errors = [("INVALID", Invalid("a")), ("TRANSIENT", Transient("a", 1.5)), ("UNAVAILABLE", Unavailable("a")), ("STOPPED", Stopped("a")),
                  ("REFUSED", Refused("a")), ("CANCELLED", Cancelled("a")), ("INTERNAL", StageError("a")), ("INTERNAL", KeyError("a"))]

        class Fails:
            def sample(self, rows):
                return [error for _, error in errors]
        plugin = Plugin("test", "1.0.0")
        plugin.sample("fails")(Fails)
        with serving(plugin, "sample", "fails") as client:
            reply = client.call("Sample", _wire.SampleRequest(rows=_wire.Rows(n=len(errors), id=["a"] * len(errors))))
        self.assertEqual([_wire.Code.Name(e.failure.code) for e in reply.errors], ["CODE_" + code for code, _ in errors])
        self.assertEqual([e.failure.retry_after_ms for e in reply.errors][1], 1500)

    def test_large_messages(self):
        class Large:
            def prompt(self, rows):
                return ["x" * (1 << 20)] * len(rows)
        plugin = Plugin("test", "1.0.0")
        plugin.prompt("large")(Large)
        with serving(plugin, "prompt", "large") as client:
            for n, fits in ((60, True), (65, False)):
                reply = client.call("Prompt", _wire.PromptRequest(rows=_wire.Rows(n=n, id=["a"] * n)))
                self.assertEqual(reply.HasField("rows"), fits)
            self.assertIn("use smaller batches", reply.failure.message)

    def test_errors_of_open(self):
        class Opens:
            def open(self, setup):
                raise OSError("no model")

            def sample(self, rows):
                return []
        plugin = Plugin("test", "1.0.0")
        plugin.sample("opens")(Opens)
        with serving(plugin) as client, self.assertLogs("racflow") as logged:
            self.assertEqual([e.message for e in client.configure("sample", "opens").errors], ["OSError: no model"])
        self.assertIn("in open", logged.output[0])

    def test_close(self):
        closed = threading.Event()

        class Closes:
            def close(self):
                closed.set()

            def sample(self, rows):
                return []
        plugin = Plugin("test", "1.0.0")
        plugin.sample("closes")(Closes)
        with serving(plugin, "sample", "closes"):
            self.assertFalse(closed.is_set())
        self.assertTrue(closed.is_set())

    def test_a_stream_that_breaks_off(self):
        begun, held, learnt = threading.Event(), threading.Event(), []

        class Learns:
            def sample(self, rows):
                return [",".join(learnt)] * len(rows)

            def fit(self, rows):
                for row in rows:
                    learnt.append(row.label)
                    begun.set()
        plugin = Plugin("test", "1.0.0")
        plugin.sample("learns")(Learns)
        with serving(plugin, "sample", "learns") as client:
            def requests():
                yield _wire.FitRequest(rows=_wire.Rows(n=1, id=["1"], label=["a"]))
                held.wait()
            call = client.method("Fit").future(requests())
            self.assertTrue(begun.wait(60))
            call.cancel()
            held.set()
            while client.call("Alive", _wire.AliveRequest()).overdue:
                pass
            reply = client.call("Fit", _wire.FitRequest(rows=_wire.Rows(n=1, id=["1"], label=["b"])))
            self.assertFalse(reply.HasField("failure"))
            reply = client.call("Sample", _wire.SampleRequest(rows=_wire.Rows(n=1, id=["1"])))
        self.assertEqual(list(reply.rows.samples.names), ["a,b"])

    def test_context_without_a_call(self):
        context = Context()
        self.assertIsNone(context.remaining())
        self.assertFalse(context.cancelled)
        context.check()


if __name__ == "__main__":
    unittest.main()
