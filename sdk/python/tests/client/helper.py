"""What the tests share: a pipeline whose knowledge is built once, and processes to watch."""
from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import racflow

ROOT = pathlib.Path(__file__).parents[4]
FILE = ROOT / "pipelines" / "intent.hcl"
DEADLINE = 120  # seconds after which a test fails; none waits for it otherwise

_folder = tempfile.mkdtemp(prefix="racflow-tests-")
_owner = os.getpid()


@atexit.register
def _remove() -> None:
    if os.getpid() == _owner:
        shutil.rmtree(_folder)


def arguments(**more: object) -> dict[str, object]:
    """Returns arguments of a pipeline with embedder hashing."""
    return {"file": str(FILE), "embedder": "hashing", "state": _folder, "trust": True, **more}


def pipeline(**more: object) -> racflow.Pipeline:
    return racflow.Pipeline(**arguments(**more))  # type: ignore[arg-type]


def minilm() -> bool:
    """Whether the embedding model is on this machine."""
    models = subprocess.run([racflow.binary(), "model", "list"], check=True, capture_output=True, text=True).stdout
    return not any(line.startswith("minilm ") and "no: racflow model pull" in line for line in models.splitlines())


def processes() -> dict[tuple[int, str], int]:
    """Returns the parent of each process, named by its number and start. Those that have ended are not among them."""
    lines = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat=,lstart="], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split(None, 3) for line in lines]
    return {(int(pid), start): int(parent) for pid, parent, state, start in rows if not state.startswith("Z")}


def tree(pid: int) -> set[tuple[int, str]]:
    """Returns a process and what it has started."""
    parents = processes()
    found = {one for one in parents if one[0] == pid}
    while more := {one for one, parent in parents.items() if parent in {p for p, _ in found}} - found:
        found |= more
    return found


def gone(some: set[tuple[int, str]]) -> bool:
    """Waits until none of these processes is there. False: the deadline has passed."""
    until = time.monotonic() + DEADLINE
    while some & processes().keys():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
