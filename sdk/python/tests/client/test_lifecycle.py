"""No process outlives the program, however that ends."""
from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest

import helper

import racflow

# A program that waits for a line once its pipeline answers, and then does something.
PROGRAM = """
import gc, itertools, os, signal, sys, time
import racflow
p = racflow.Pipeline(**{arguments!r})
def answer():
    print(p.answer("hello").text, p._server.pid, flush=True)
answer()
sys.stdin.readline()
{then}
"""


class Program:
    """The program, and the processes of its pipeline."""

    def __init__(self, test: unittest.TestCase, then: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(arguments=helper.arguments(), then=then)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )
        test.addCleanup(self._end)
        self.test = test
        self.processes = self.answer()

    def answer(self) -> set[tuple[int, str]]:
        """Waits until the program has an answer. Returns the processes that gave it."""
        assert self.process.stdout and self.process.stderr
        words = self.process.stdout.readline().split()
        self.test.assertEqual(words[:1], ["hello"], words or self.process.stderr.read())
        self.server = words[1]
        return helper.tree(int(words[1]))

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def _end(self) -> None:
        self.process.kill()
        self.process.communicate()


class TestLifecycle(unittest.TestCase):
    def test_nothing_is_left(self) -> None:
        ends = {
            "close": "p.close(); sys.stdin.read()", "garbage collection": "del p; gc.collect(); sys.stdin.read()",
            "a cycle": "p.self = p; del p; gc.collect(); sys.stdin.read()", "the end": "", "an exception": "raise ValueError",
            "exit at once": "os._exit(0)",
            "under way": "import threading\nthreading.Thread(target=lambda: list(p.run(itertools.repeat('x'))), daemon=True).start()\nanswer()",
        }
        for name, then in ends.items():
            with self.subTest(name):
                program = Program(self, then)
                self.assertGreater(len(program.processes), 1)  # with the stages
                program.go()
                self.assertTrue(helper.gone(program.processes), program.processes)
                if "stdin.read()" in then:
                    self.assertIsNone(program.process.poll())
                else:
                    program.process.wait(helper.DEADLINE)

    def test_kill(self) -> None:
        program = Program(self, "list(p.run(map(str, range(10**9))))")
        program.go()
        program.process.kill()
        self.assertTrue(helper.gone(program.processes))

    def test_fork(self) -> None:
        program = Program(self, """
child = os.fork()
if child == 0:
    answer()
    sys.stdin.readline()
    sys.exit()
os.waitpid(child, 0)
answer()
sys.stdin.read()
""")
        server = program.server
        program.go()
        childs = program.answer()
        self.assertFalse(childs & program.processes)
        program.go()
        self.assertTrue(helper.gone(childs))
        program.answer()
        self.assertEqual(program.server, server)
        program.process.kill()
        self.assertTrue(helper.gone(program.processes))

    def test_a_forked_process_does_not_keep_that_of_its_parent(self) -> None:
        program = Program(self, """
if os.fork() == 0:
    time.sleep(10**6)
p.close()
sys.stdin.read()
""")
        program.go()
        self.assertTrue(helper.gone(program.processes))
        os.killpg(program.process.pid, signal.SIGKILL)  # the child, too

    def test_interrupt(self) -> None:
        program = Program(self, """
try:
    for number, one in enumerate(p.run(itertools.repeat("hello"))):
        if number == 0:
            print(one.text, p._server.pid, flush=True)
except KeyboardInterrupt:
    answer()
""")
        server = program.server
        program.go()
        program.answer()
        os.killpg(program.process.pid, signal.SIGINT)
        program.answer()
        self.assertEqual(program.server, server)
        self.assertTrue(helper.gone(program.processes))
        self.assertEqual(program.process.wait(helper.DEADLINE), 0)

    def test_multiprocessing(self) -> None:
        with helper.pipeline() as pipeline:
            for method in ("fork", "spawn"):
                with self.subTest(method), multiprocessing.get_context(method).Pool(2) as pool:
                    results = pool.map(pipeline.answer, ["a", "b"], chunksize=1)
                    self.assertEqual([one.text for one in results], ["a", "b"])
                    pool.close()
                    pool.join()
            self.assertEqual(pipeline.answer("c").text, "c")

    def test_a_pickled_pipeline_is_its_arguments(self) -> None:
        with helper.pipeline() as pipeline:
            copied = pickle.loads(pickle.dumps(pipeline))
            self.assertIsNone(copied._server)
            self.assertEqual(repr(copied), repr(pipeline))
            with copied:
                self.assertEqual(copied.answer("hello"), pipeline.answer("hello"))

    def test_it_starts_again(self) -> None:
        pipeline = helper.pipeline().start()
        self.addCleanup(pipeline.close)
        os.kill(pipeline._server.pid, signal.SIGKILL)  # type: ignore[union-attr]
        pipeline._server._process.wait()  # type: ignore[union-attr]
        self.assertEqual(pipeline.answer("a").text, "a")
        pipeline.close()
        self.assertEqual(pipeline.answer("b").text, "b")

    def test_closing_ends_what_is_under_way(self) -> None:
        pipeline, begun = helper.pipeline().start(), threading.Event()
        errors: list[Exception] = []

        def work() -> None:
            try:
                for _ in pipeline.run(map(str, range(10**9))):
                    begun.set()
            except racflow.Error as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        self.assertTrue(begun.wait(helper.DEADLINE))
        pipeline.close()
        thread.join(helper.DEADLINE)
        self.assertEqual([str(one) for one in errors], ["racflow was closed"])

    def test_threads_and_files_are_given_back(self) -> None:
        def use() -> None:
            with helper.pipeline() as pipeline:
                self.assertEqual(len(pipeline.run(["a", "b"])), 2)

        def count() -> tuple[int, int]:
            gc.collect()
            return threading.active_count(), len(os.listdir("/dev/fd"))

        use()
        before = count()
        use()
        self.assertEqual(count(), before)

    def test_what_the_process_says_is_logged(self) -> None:
        with self.assertLogs("racflow", "INFO") as logs, helper.pipeline():
            pass
        self.assertTrue(any("up to date" in line or "embedded" in line for line in logs.output), logs.output)


if __name__ == "__main__":
    unittest.main()
