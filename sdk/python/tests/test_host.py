import contextlib
import threading
import unittest
from concurrent import futures

import grpc

from racflow_plugin import Cancelled, Context, Host, Stopped, _wire, key_of


class Engine:
    """The service Host, as racflow has it."""

    def __init__(self):
        self.cache, self.profiles, self.tokens = {}, {}, set()
        self.results, self.permits = [], threading.Semaphore(0)
        self.ended, self.asked = threading.Semaphore(0), threading.Semaphore(0)
        self.refuse = False

    def CacheGet(self, request, call):
        self.tokens.update(value for key, value in call.invocation_metadata() if key == "racflow-token")
        return _wire.CacheGetReply(values=[_wire.CachedValue(known=key in self.cache, value=self.cache.get(key, b"")) for key in request.keys])

    def CachePut(self, request, call):
        self.cache[request.key] = request.value
        return _wire.CachePutReply()

    def ProfileGet(self, request, call):
        return _wire.ProfileGetReply(profile_json=self.profiles.get((request.endpoint, request.model), b""))

    def ProfilePut(self, request, call):
        self.profiles[request.endpoint, request.model] = request.profile_json
        return _wire.ProfilePutReply()

    def Acquire(self, requests, call):
        self.call = next(requests).call
        self.asked.release()
        if self.refuse:
            yield _wire.AcquireReply(failure=_wire.Failure(code="CODE_STOPPED", message="the budget is spent"))
            return
        results, answered = [], threading.Event()

        def read():
            results.extend(request.result for request in requests)
            answered.set()
            self.permits.release()
        threading.Thread(target=read, daemon=True).start()
        self.permits.acquire()
        if not answered.is_set():
            yield _wire.AcquireReply()
            answered.wait()
        self.results.append([(_wire.Status.Name(each.status), each.input_tokens, each.retry_after_ms, each.lost) for each in results])
        self.ended.release()


@contextlib.contextmanager
def engine():
    made, own = Engine(), {}
    for name, _, request, reply in _wire.methods("Host"):
        make = grpc.stream_stream_rpc_method_handler if name == "Acquire" else grpc.unary_unary_rpc_method_handler
        own[name] = make(getattr(made, name), request_deserializer=request.FromString, response_serializer=reply.SerializeToString)
    server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[grpc.method_handlers_generic_handler("racflow.stage.v2.Host", own)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    host = Host(_wire.HostAddress(address=f"127.0.0.1:{port}", token="secret"))
    try:
        yield made, host
    finally:
        host.close()
        server.stop(0).wait()


class Call:
    """The end of a call, as gRPC tells of it."""

    def time_remaining(self):
        return None

    def add_callback(self, then):
        self.cancel = then
        return True


class Shared(unittest.TestCase):
    def test_cache_and_profiles(self):
        with engine() as (made, host):
            key = key_of("a", "question")
            self.assertEqual(host.cache_get([key]), [None])
            host.cache_put(key, b"")
            self.assertEqual(host.cache_get([key, key_of("a question")]), [b"", None])
            self.assertEqual(made.tokens, {"secret"})
            self.assertIsNone(host.profile("http://a", "m"))
            host.keep_profile("http://a", "m", {"thinking": True})
            self.assertEqual(host.profile("http://a", "m"), {"thinking": True})
            self.assertNotEqual(key_of("ab", "c"), key_of("a", "bc"))

    def test_calls(self):
        with engine() as (made, host):
            made.permits.release()
            with host.acquire("http://a", Context(), tokens=12, most_output_tokens=20) as call:
                call.result("busy", retry_after=1, input_tokens=9)
            self.assertEqual((made.call.endpoint, made.call.tokens, made.call.most_output_tokens), ("http://a", 12, 20))
            self.assertTrue(made.ended.acquire(timeout=60))
            made.permits = threading.Semaphore(1)
            with self.assertRaises(KeyError), host.acquire("http://a"):
                raise KeyError("lost")
            self.assertTrue(made.ended.acquire(timeout=60))
            made.permits = threading.Semaphore(1)
            with host.acquire("http://a"):
                pass
            self.assertTrue(made.ended.acquire(timeout=60))
            self.assertEqual(made.results, [[("STATUS_BUSY", 9, 1000, False)], [("STATUS_LEFT", 0, 0, True)], [("STATUS_OK", 0, 0, False)]])

    def test_refused(self):
        with engine() as (made, host):
            made.refuse = True
            with self.assertRaisesRegex(Stopped, "the budget is spent"), host.acquire("http://a"):
                self.fail("the call was sent")

    def test_withdrawn(self):
        with engine() as (made, host):
            ended = Call()
            context = Context(ended)

            def cancel():
                made.asked.acquire()
                ended.cancel()
            threading.Thread(target=cancel, daemon=True).start()
            with self.assertRaises(Cancelled), host.acquire("http://a", context):
                self.fail("the call was sent")
            self.assertTrue(made.ended.acquire(timeout=60))
            self.assertEqual(made.results, [[("STATUS_LEFT", 0, 0, False)]])

    def test_alone(self):
        host = Host()
        host.cache_put(b"a" * 32, b"b")
        self.assertEqual(host.cache_get([b"a" * 32]), [None])
        self.assertIsNone(host.profile("a", "b"))
        with host.acquire("http://a") as call:
            call.result("ok")


if __name__ == "__main__":
    unittest.main()
