"""A plugin as a process, started as racflow does."""
import base64
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import textwrap
import unittest

import grpc

from racflow_plugin import _tls, _wire

PACKAGE = str(pathlib.Path(__file__).resolve().parents[1])
SCRIPT = """
    import ctypes, os, sys
    sys.path.insert(0, {package!r})
    from racflow_plugin import Plugin
    import beside  # of vendor/
    print("printed by an import")
    plugin = Plugin("test", "1.0.0")

    @plugin.sample("it")
    class It:
        def open(self, setup):
            self.log, self.dir = setup.log, setup.state_dir

        def sample(self, rows):
            self.log.warning("sampled %d", len(rows), extra={{"rows": len(rows)}})
            return [f"{{sorted(name for name in os.environ if 'PLUGIN' in name)}} {{sys.stdin.read()!r}} {{ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)}}" for row in rows]

        def close(self):
            (self.dir / "closed").write_text("yes")

    plugin.serve()
"""


class Process(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "vendor").mkdir()
        (self.folder / "vendor" / "beside.py").write_text("")
        (self.folder / "plugin").write_text(textwrap.dedent(SCRIPT.format(package=PACKAGE)))
        (self.folder / "sockets").mkdir()
        self.key, self.certificate, _ = _tls.certificate()

    def start(self, **environment):
        environment = {"PATH": os.environ.get("PATH", ""), "PYTHONDONTWRITEBYTECODE": "1", "PLUGIN_UNIX_SOCKET_DIR": str(self.folder / "sockets"),
                       "PLUGIN_CLIENT_CERT": self.certificate.decode(), "RACFLOW_PLUGIN": "b6c0ce8b-stage", **environment}
        process = subprocess.Popen([sys.executable, str(self.folder / "plugin")], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: [process.kill(), process.wait(), process.stdin.close(), process.stdout.close(), process.stderr.close()])
        return process

    def connect(self, process):
        line = process.stdout.readline().decode()
        core, protocol, network, address, kind, certificate = line.strip().split("|")
        self.assertEqual((core, protocol, network, kind), ("1", "2", "unix", "grpc"), line)
        root = ssl.DER_cert_to_PEM_cert(base64.b64decode(certificate + "=" * (-len(certificate) % 4)))
        credentials = grpc.ssl_channel_credentials(root.encode(), self.key, self.certificate)
        channel = grpc.secure_channel("unix:" + address, credentials, [("grpc.ssl_target_name_override", "localhost")])
        self.addCleanup(channel.close)

        def call(path, request, reply):
            return channel.unary_unary(path, request_serializer=lambda r: r if isinstance(r, bytes) else r.SerializeToString(), response_deserializer=reply)(request, timeout=60)
        return call, address

    def sampled(self, call) -> str:
        """What the stage says of its process: its environment, its standard input, whether others can read it."""
        stage = "/racflow.stage.v2.Stage/"
        reply = call(stage + "Configure", _wire.ConfigureRequest(kind="KIND_SAMPLE", name="it", block="mine", state_dir=str(self.folder)), _wire.ConfigureReply.FromString)
        self.assertFalse(reply.errors)
        reply = call(stage + "Sample", _wire.SampleRequest(rows=_wire.Rows(n=1, id=["a"])), _wire.RowsReply.FromString)
        return reply.rows.samples.names[0]

    def test_from_start_to_shutdown(self):
        process = self.start()
        call, _ = self.connect(process)
        self.sampled(call)
        self.assertEqual(call("/plugin.GRPCController/Shutdown", b"", bytes), b"")
        self.assertEqual(process.wait(60), 0)
        self.assertEqual((self.folder / "closed").read_text(), "yes")
        self.assertEqual(process.stdout.read(), b"")
        said = process.stderr.read().decode()
        self.assertIn("printed by an import\n", said)
        self.assertIn('{"level": "WARN", "msg": "sampled 1", "rows": 1}\n', said)

    @unittest.skipUnless(sys.platform == "linux", "it has an effect on Linux alone")
    def test_others_are_kept_out(self):
        for given, want in (({}, 0), ({"RACFLOW_DUMPABLE": "1"}, 1)):
            call, _ = self.connect(self.start(**given))
            self.assertEqual(self.sampled(call), f"[] '' {want}")

    def test_ends_with_racflow(self):
        process = self.start()
        _, address = self.connect(process)
        self.assertTrue(os.path.exists(address))
        process.stdin.close()
        self.assertEqual(process.wait(60), 0)
        self.assertFalse(os.path.exists(self.folder / "sockets"))

    def test_strangers_are_refused(self):
        process = self.start()
        self.key, self.certificate, _ = _tls.certificate()
        call, _ = self.connect(process)
        with self.assertRaises(grpc.RpcError) as raised:
            call("/racflow.stage.v2.Stage/Describe", b"", bytes)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_started_by_a_person(self):
        process = self.start(RACFLOW_PLUGIN="")
        self.assertEqual(process.wait(60), 1)
        self.assertEqual(process.stderr.read(), b"test is a plugin for racflow, which starts it where a pipeline file uses one of its stages.\n")


if __name__ == "__main__":
    unittest.main()
