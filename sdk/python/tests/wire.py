"""A server in this process, and a client for it."""
import contextlib

import grpc

from racflow_plugin import _server, _wire

METHODS = {name: (path, request, reply) for name, path, request, reply in _wire.methods("Stage")}


class Client:
    def __init__(self, port: int):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])

    def method(self, name: str):
        path, request, reply = METHODS[name]
        kind = self.channel.stream_unary if name == "Fit" else self.channel.unary_unary
        return kind(path, request_serializer=request.SerializeToString, response_deserializer=reply.FromString)

    def call(self, name: str, request, **options):
        return self.method(name)(iter([request]) if name == "Fit" else request, **options)

    def configure(self, kind: str, name: str, config: str = "", **more):
        return self.call("Configure", _wire.ConfigureRequest(kind="KIND_" + kind.upper(), name=name, block="mine", config_json=config.encode(), **more))


@contextlib.contextmanager
def serving(plugin, kind: str = "", name: str = "", config: str = "", **more):
    """A client of a server, whose stage is configured if it is named."""
    server = _server.Server(plugin)
    client = Client(server.start("127.0.0.1:0"))
    try:
        if kind:
            reply = client.configure(kind, name, config, **more)
            if reply.errors:
                raise AssertionError(str(reply.errors))
        yield client
    finally:
        client.channel.close()
        server.close()
