"""How bench.py and a contender talk.

A contender is a process that gets ready, prints a JSON line with what it found
(so that the contenders' answers can be compared), and then does one task for
each line that it reads: the line is the task's name, and the reply is a JSON
object with "n", the number of texts or queries, and "ms" per one of them.
While it waits it does nothing, so the contenders can take turns.
"""

import json
import statistics
import sys
import time


def serve(tasks, answers):
    print(json.dumps(answers), flush=True)
    for line in sys.stdin:
        print(json.dumps(tasks[line.strip()]()), flush=True)


def each(queries, ask):
    """The task of asking for one query after the other: the median time."""

    def task():
        took = []
        for query in queries:
            start = time.perf_counter()
            ask(query)
            took.append(1000 * (time.perf_counter() - start))
        return {"n": len(queries), "ms": statistics.median(took)}

    return task


def whole(n, do):
    """The task of doing n things in one call."""

    def task():
        start = time.perf_counter()
        do()
        return {"n": n, "ms": 1000 * (time.perf_counter() - start) / n}

    return task


def lines(path):
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


def matrix(path):
    import numpy

    return numpy.fromfile(path, dtype="<f4").reshape(-1, 384)
