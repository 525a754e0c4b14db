"""Arguments of a stage's config block, described by the annotated fields of its class.

racflow checks a file by the description before anything starts. The same is checked here once more,
except for patterns: they are RE2's, which Python does not have.
"""
from __future__ import annotations

import dataclasses
import datetime
import json
import pathlib
import re
import types
import typing

from . import _wire
from ._errors import ArgumentError

_TYPES = {
    str: "STRING", int: "INT", float: "FLOAT", bool: "BOOL", datetime.timedelta: "DURATION", pathlib.Path: "PATH",
    list[str]: "STRING_LIST", dict[str, str]: "STRING_MAP", list[float]: "NUMBER_LIST", dict[str, float]: "NUMBER_MAP",
    dict[str, list[str]]: "LIST_MAP",
}
_WORDS = {
    "STRING": "string", "INT": "int, a whole number", "FLOAT": "float", "BOOL": "bool", "DURATION": 'duration, such as "1m30s"', "PATH": "path",
    "STRING_LIST": "list(string)", "STRING_MAP": "map(string)", "NUMBER_LIST": "list(number)", "NUMBER_MAP": "map(number)",
    "LIST_MAP": "map(list(string))", "BLOCK": "block",
}
_ZERO = ("", 0, 0.0, False, [], {}, None)


def argument(default: typing.Any = dataclasses.MISSING, *, doc: str = "", secret: bool = False, choices: typing.Sequence[str] = (),
             min: float | None = None, max: float | None = None, above: float | None = None, below: float | None = None,
             min_length: int = 0, max_length: int = 0, pattern: str = "", example: str = "", conflicts: typing.Sequence[str] = (),
             requires: typing.Sequence[str] = (), since: str = "", affects_output: bool = True) -> typing.Any:
    """Describes the argument that an annotated field of a stage's class is.

    Without a default it has to be given. Its type is that of the field: str, int, float, bool,
    datetime.timedelta, pathlib.Path, list[str], list[float], dict[str, str], dict[str, float],
    dict[str, list[str]], a Literal of strings, or a dataclass (a block with arguments of its own); each
    may be "| None", which is what it then is where a file does not give it.

    doc is a sentence for people. A secret is never shown, logged or hashed. choices are the allowed
    strings. min, max, above and below bound a number, each in a list or map, or a duration in
    seconds; above and below leave out the bound itself. min_length and max_length bound the characters
    of a string or the elements of a list or map. pattern is RE2. conflicts and requires name
    arguments that must not, or must, be given beside it. since is the version of the plugin that first
    had it. affects_output is False for what changes no result: a timeout, requests at a time.
    """
    facts = {"doc": doc, "secret": secret, "one_of": list(choices), "pattern": pattern, "example": example, "conflicts": list(conflicts),
             "requires": list(requires), "since": since, "output_unaffected": not affects_output,
             "min_length": min_length, "max_length": max_length,
             "min": min if above is None else above, "min_excluded": above is not None,
             "max": max if below is None else below, "max_excluded": below is not None}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata={_KEY: facts})
    return dataclasses.field(default=default, metadata={_KEY: facts})


_KEY = "racflow_plugin"


@dataclasses.dataclass
class Described:
    """An argument: its message, and how its value becomes the field's."""

    message: typing.Any
    type: str
    optional: bool  # it may be None
    cls: type | None = None  # of a block
    fields: "list[Described]" = dataclasses.field(default_factory=list)


def prepare(cls: type) -> type:
    """Makes a dataclass of a stage's class that is none, and of those that it inherits arguments from."""
    for base in reversed(cls.__mro__[1:]):
        if any(isinstance(value, dataclasses.Field) for value in base.__dict__.values()):
            prepare(base)
    if "__dataclass_fields__" in cls.__dict__:
        return cls
    return dataclasses.dataclass(kw_only=True, eq=False, repr=False)(cls)  # secrets are not shown


def describe(cls: type) -> list[Described]:
    """The arguments of a dataclass. What cannot be described is a mistake of the program: a TypeError."""
    hints = typing.get_type_hints(cls, include_extras=True)
    described = [_describe(cls, field, hints[field.name]) for field in dataclasses.fields(cls) if field.init and not field.name.startswith("_")]
    names = {each.message.name for each in described}
    for each in described:
        for other in [*each.message.conflicts, *each.message.requires]:
            if other not in names:
                raise TypeError(f"{each.message.name} of {cls.__name__} names {other!r}, which is no argument")
    return described


def _describe(cls: type, field, hint) -> Described:
    facts = dict(field.metadata.get(_KEY, {}))
    if typing.get_origin(hint) is typing.Annotated:
        hint, *notes = typing.get_args(hint)
        facts["doc"] = facts.get("doc") or next((note for note in notes if isinstance(note, str)), "")
    optional = typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint)
    if optional:
        rest = [each for each in typing.get_args(hint) if each is not type(None)]
        hint = rest[0] if len(rest) == 1 else hint
    if typing.get_origin(hint) is typing.Literal:
        facts["one_of"], hint = list(typing.get_args(hint)), str
    described = Described(None, "", optional)
    if dataclasses.is_dataclass(hint):
        described.type, described.cls, described.fields = "BLOCK", hint, describe(hint)
    elif hint in _TYPES:
        described.type = _TYPES[hint]
    else:
        raise TypeError(f"{cls.__name__}.{field.name} has the type {hint}, which no argument can have; use one of those that argument() names")
    required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    message = _wire.Argument(name=field.name, type="ARGUMENT_TYPE_" + described.type, required=required,
                             fields=[each.message for each in described.fields], **facts)
    default = field.default if field.default is not dataclasses.MISSING else None if required else field.default_factory()
    if described.type != "BLOCK" and default not in _ZERO:
        message.default_json = json.dumps(_plain(default), ensure_ascii=False)
    described.message = message
    if message.default_json:
        try:
            _value(described, json.loads(message.default_json), [])
        except ArgumentError as error:
            raise TypeError(f"the default of {cls.__name__}.{field.name}: {error}") from None
    return described


def _plain(value):
    if isinstance(value, datetime.timedelta):
        return f"{value.total_seconds():.9f}".rstrip("0").rstrip(".") + "s"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    return str(value) if isinstance(value, pathlib.Path) else value


def build(cls: type, described: list[Described], config: bytes):
    """An instance of a stage's class with what a file gives. It raises an ArgumentError that holds all errors."""
    try:
        given = json.loads(config) if config else {}
    except ValueError as error:
        raise ArgumentError("", f"the config is not a JSON object: {error}") from None
    if not isinstance(given, dict):
        raise ArgumentError("", "the config is not a JSON object")
    return cls(**_values(described, given))


def _values(described: list[Described], given: dict) -> dict:
    known = {each.message.name: each for each in described}
    errors = [ArgumentError(name, "there is no such argument") for name in sorted(given) if name not in known]
    values = {}
    for name, each in known.items():
        if given.get(name) is None:
            if each.message.required:
                errors.append(ArgumentError(name, "it is required"))
            elif each.type == "BLOCK" and not each.optional:
                values[name] = each.cls(**_values(each.fields, {}))
            continue
        try:
            values[name] = _value(each, given[name], errors)
        except ArgumentError as error:
            errors.append(error)
        if given[name] == "":
            continue
        for other in each.message.conflicts:
            if given.get(other) not in (None, ""):
                errors.append(ArgumentError(name, f"it cannot be given beside {other}: leave one of them out"))
        for other in each.message.requires:
            if given.get(other) in (None, ""):
                errors.append(ArgumentError(name, f"it means nothing without {other}: give both, or neither"))
    if errors:
        errors[0].others += errors[1:]
        raise errors[0]
    return values


def _value(each: Described, raw, errors: list):
    """The value of a field. It raises an ArgumentError, or adds several to errors."""
    message, name = each.message, each.message.name

    def wrong(*path):
        return ArgumentError(name, f"it must be of type {_WORDS[each.type]}", *path)

    def text(value, *path):
        if not isinstance(value, str):
            raise wrong(*path)
        if message.one_of and value not in message.one_of:
            shown = "" if message.secret else f", and is {value!r}"
            raise ArgumentError(name, "it must be one of " + ", ".join(message.one_of) + shown, *path)
        return value

    def number(value, *path):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(*path)
        return bounded(float(value), *path)

    def bounded(value, *path):
        low, high = message.HasField("min"), message.HasField("max")
        if (low and not (value > message.min if message.min_excluded else value >= message.min)
                or high and not (value < message.max if message.max_excluded else value <= message.max)):
            words = ([("above" if message.min_excluded else "at least") + f" {message.min:g}"] if low else []) + \
                    ([("below" if message.max_excluded else "at most") + f" {message.max:g}"] if high else [])
            raise ArgumentError(name, "it must be " + " and ".join(words) + ("" if message.secret else f", and is {value:g}"), *path)
        return value

    def sized(value):
        if len(value) < message.min_length or 0 < message.max_length < len(value):
            raise ArgumentError(name, f"its length must be from {message.min_length} to {message.max_length or 'any'}, and is {len(value)}")
        return value

    kind = each.type
    if kind == "BLOCK":
        if not isinstance(raw, dict):
            raise wrong()
        try:
            return each.cls(**_values(each.fields, raw))
        except ArgumentError as error:
            errors += [ArgumentError(name, e.args[0], *([e.argument] if e.argument else []), *e.path) for e in error._all()]
            return None
    if kind in ("STRING", "PATH"):
        value = sized(text(raw))
        return pathlib.Path(value) if kind == "PATH" else value
    if kind == "BOOL":
        if not isinstance(raw, bool):
            raise wrong()
        return raw
    if kind == "INT":
        value = number(raw)
        if not value.is_integer():
            raise wrong()
        return int(raw)
    if kind == "FLOAT":
        return number(raw)
    if kind == "DURATION":
        value = _duration(raw)
        if value is None:
            raise wrong()
        bounded(value.total_seconds())
        return value
    if kind.endswith("_LIST"):
        if not isinstance(raw, list):
            raise wrong()
        one = text if kind == "STRING_LIST" else number
        return [one(value, i) for i, value in enumerate(sized(raw))]
    if not isinstance(raw, dict):
        raise wrong()
    if kind == "LIST_MAP":
        if not all(isinstance(value, list) for value in raw.values()):
            raise wrong()
        return {key: [text(value, key, i) for i, value in enumerate(values)] for key, values in sized(raw).items()}
    one = text if kind == "STRING_MAP" else number
    return {key: one(value, key) for key, value in sized(raw).items()}


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def _duration(text) -> datetime.timedelta | None:
    """The duration that a file writes as 1m30s; None: it is none."""
    if text == "0":
        return datetime.timedelta()
    if not isinstance(text, str) or not text:
        return None
    sign, rest = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
    parts = _PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        return None
    return datetime.timedelta(seconds=sign * sum(float(number) * _UNITS[unit] for number, unit in parts))
