"""Finds the program, and runs its commands."""
from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from typing import Any

from ._errors import Diagnostic, Error, PipelineError

log = logging.getLogger("racflow")


def binary() -> str:
    """Returns the path of the program ``racflow``.

    It is the one that RACFLOW_BINARY names, else the one that was installed with this package, else the one on PATH.
    Raises Error if there is none.
    """
    if named := os.environ.get("RACFLOW_BINARY"):
        return named
    schemes = (None, sysconfig.get_preferred_scheme("user"))
    folders = [sysconfig.get_path("scripts") if scheme is None else sysconfig.get_path("scripts", scheme) for scheme in schemes]
    found = shutil.which("racflow", path=os.pathsep.join(folders)) or shutil.which("racflow")
    if found is None:
        raise Error("there is no program racflow: install the package from a wheel, or name the program in RACFLOW_BINARY")
    return found


def command(*arguments: str, cwd: str | None = None) -> tuple[int, str, str]:
    """Runs a command to its end. Returns its exit code and what it wrote on standard output and standard error."""
    try:
        done = subprocess.run([binary(), *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
    except OSError as error:
        raise Error(f"racflow cannot be started: {error}") from error
    return done.returncode, done.stdout, done.stderr


def report(name: str, flags: Sequence[str], *more: str, cwd: str | None = None) -> dict[str, Any]:
    """Runs a command with --json and returns what it reports, also of items of which some failed. Raises PipelineError if it fails."""
    code, out, err = command(name, "--json", *flags, *more, cwd=cwd)
    if code not in (0, 3):
        raise explain(flags, err.strip(), cwd)
    for line in err.splitlines():
        logged(line)
    return dict(json.loads(out))


def logged(line: str) -> None:
    """Logs a line that the program wrote on standard error."""
    log.log(logging.WARNING if line.startswith("warning:") else logging.INFO, "%s", line)


def inputs(flags: Sequence[str], cwd: str | None) -> list[dict[str, str]]:
    """Returns the columns of the inputs that a file names, by pipeline; of a file with mistakes none."""
    _, out, _ = command("validate", "--json", *flags, cwd=cwd)
    try:
        return list(json.loads(out).get("inputs") or ())
    except ValueError:
        return []


def explain(flags: Sequence[str], stderr: str, cwd: str | None) -> PipelineError:
    """Returns why a command with these flags failed: the mistakes in the file, else what the command wrote."""
    code, out, _ = command("validate", "--json", *flags, cwd=cwd)
    try:
        found = tuple(Diagnostic.of(one) for one in json.loads(out)["diagnostics"] if code != 0 and one["severity"] == "error")
    except (ValueError, KeyError):
        found = ()
    return PipelineError("\n".join(map(str, found)) or stderr or "racflow ended without a word", found)
