"""The messages of stage.proto as Python classes.

stage.binpb is the compiled stage.proto. The classes are made when the package is imported, so that they fit
whatever version of protobuf a plugin has: generated code would demand one.
"""
from __future__ import annotations

import os

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

PROTOCOL = 2
MINOR = 1
MOST_BYTES = 64 << 20  # of a message, both ways
MOST_CALLS = 256  # at a time

_PACKAGE = "racflow.stage.v2"


def _load():
    with open(os.path.join(os.path.dirname(__file__), "stage.binpb"), "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for each in files.file:
        pool.AddSerializedFile(each.SerializeToString())
    return pool.FindFileByName(files.file[0].name)


_file = _load()
for _name, _message in _file.message_types_by_name.items():
    globals()[_name] = message_factory.GetMessageClass(_message)
for _name, _enum in _file.enum_types_by_name.items():
    globals()[_name] = enum_type_wrapper.EnumTypeWrapper(_enum)


def methods(service: str):
    """The methods of a service: name, path, class of the request and of the reply."""
    for method in _file.services_by_name[service].methods:
        yield (method.name, f"/{_PACKAGE}.{service}/{method.name}",
               message_factory.GetMessageClass(method.input_type), message_factory.GetMessageClass(method.output_type))
