"""Runs racflow and its peers in turns and prints the ratios of their times.

Every contender of a measure is a process that is made ready first; then they
take turns, a task each (A B C, A B C, ...), so that what else the machine does
hits all alike. A time is the median over the rounds. Times are comparable
within one run only; bench.json keeps each round's.

The measures are in measures.py, racflow's side in racflow/, the peers' in
peers/. All get the same threads, one unless --threads says otherwise; whole
classifications get every core.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import data
import measures
import models
import psutil

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = [
    "faiss-cpu", "hnswlib", "bm25s", "tantivy", "sentence-transformers", "torch", "onnxruntime", "chromadb", "numpy",
]
UNITS = [  # what decides how fast products of matrices are, by the kernel's names
    "avx2", "fma", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "bf16",
]
THREADS = [
    "GOMAXPROCS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS",
]


def main():
    known = measures.measures()
    p = argparse.ArgumentParser(description="Compare racflow with its peers.")
    p.add_argument("--cache", type=pathlib.Path, required=True)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--output", type=pathlib.Path, default=ROOT / "bench.json")
    p.add_argument("measure", nargs="*", help=f"of {', '.join(known)}; all if none is given")
    args = p.parse_args()
    if unknown := set(args.measure) - set(known):
        p.error(f"unknown measure {', '.join(unknown)}")
    folder, where = data.prepare(args.cache, args.cache / "racflow")
    report = {"machine": machine(), "rounds": args.rounds, "data": where, "packages": versions(), "missing": {}, "rows": [], "checks": {}}
    try:
        for name in args.measure or known:
            measure = known[name]
            threads = args.threads if measure.get("threads") != measures.ALL_CORES else os.cpu_count()
            rounds = min(args.rounds, measure.get("rounds", args.rounds))
            print(f"{measure['title']}: {rounds} rounds, threads: {threads}", flush=True)
            try:
                if more := measure.get("arguments"):
                    models.model_folder(more[0], args.cache)  # racflow's own program makes none
                run(name, measure, threads, rounds, args, folder, report)
            except (Broken, ImportError, OSError) as err:
                report["missing"][name] = str(err)
                print(f"  {name} is left out: {err}", flush=True)
    finally:  # Ctrl-C loses only the measure that it stops
        table(report)
        args.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"\nEvery round's figures are in {args.output}.")


def run(name, measure, threads, rounds, args, folder, report):
    """Lets the contenders of one measure take turns."""
    more = measure.get("arguments", [])
    commands = {"racflow": [args.cache / "racflow", "embed" if more else name, folder, ROOT / "bin" / "racflow", *more]}
    for peer in measure["contenders"]:
        commands[peer] = [sys.executable, HERE / measure["peers"], peer, folder, str(threads), *more[:1]]
    running = {who: Contender(who, command, threads) for who, command in commands.items()}
    replies = {}

    def turn(who, do):
        """A contender's turn; a peer that breaks is left out from there on."""
        try:
            return do()
        except Broken as err:
            if who == "racflow":
                raise
            running.pop(who).stop()
            replies.pop(who, None)
            report["missing"][who] = str(err)
            print(f"  {who} is left out: {err}", flush=True)

    try:
        answers = {who: turn(who, c.reply) for who, c in list(running.items())}
        if measure["check"]:
            report["checks"].update(measure["check"]({who: a for who, a in answers.items() if a}, folder))
        tasks = list(dict.fromkeys(task for _, task, _, _ in measure["rows"]))
        replies = {who: {task: [] for task in tasks} for who in running}
        for _ in range(rounds):
            for task in tasks:
                for who, contender in list(running.items()):
                    if reply := turn(who, lambda: contender.do(task)):
                        replies[who][task].append(reply)
    finally:
        for contender in running.values():
            contender.stop()
    for title, task, figure, aims in measure["rows"]:
        figures = {who: [reply[figure] for reply in by_task[task]] for who, by_task in replies.items()}
        report["rows"].append({"measure": name, "title": f"{measure['title']}: {title}", "threads": threads, "aims": aims, "rounds": figures})
    for who, by_task in replies.items():
        for task, got in by_task.items():
            if "accuracy" in got[-1]:
                report["checks"][f"accuracy, {task}, {who}"] = got[-1]["accuracy"]


class Broken(Exception):
    """A contender ended; its last words."""


class Contender:
    """A process that does tasks; see contender.py."""

    def __init__(self, name, command, threads):
        limits = dict.fromkeys(THREADS, str(threads))
        self.name = name
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [str(part) for part in command], env=os.environ | limits, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)

    def do(self, task):
        """One task, with the processor time of the process and its children."""
        before = self.cpu()
        try:
            print(task, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # reply tells why
        reply = self.reply()
        time.sleep(0.05)  # threads that spin on for work end their turn
        return reply | {"cpu": 1000 * (self.cpu() - before) / reply["n"]}

    def reply(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise Broken(([self.name + " ended"] + self.errors.read().strip().splitlines())[-1])
        return json.loads(line)

    def cpu(self):
        root = psutil.Process(self.process.pid)
        return sum(sum(p.cpu_times()[:2]) for p in [root, *root.children(recursive=True)])

    def stop(self):
        try:
            self.process.stdin.close()  # it ends by itself
        except BrokenPipeError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def table(report):
    print(f"\n{report['machine']['processor']}, {report['machine']['cores']} cores: {' '.join(report['machine']['units']) or 'units unknown'}")
    print(f"\n{'':62}{'time':>10}  racflow / peer")
    for row in report["rows"]:
        medians = {who: statistics.median(figures) for who, figures in row["rounds"].items()}
        print(f"\n{row['title']} ({row['threads']} threads)".replace("(1 threads", "(1 thread"))
        row["medians_ms"], row["ratios"] = medians, {}
        for who, median in medians.items():
            line = f"  {who:60}{median:7.3f} ms"
            if who != "racflow":
                ratio = row["ratios"][who] = medians["racflow"] / median
                line += f"  {ratio:.2f}"
                if aim := row["aims"].get(who):
                    line += f"  (aim: at most {aim:.2f}{'' if ratio <= aim else '; MISSED'})"
            print(line)
    print()
    for check, figure in report["checks"].items():
        print(f"  {check:60}{figure:12.6f}")
    for who, why in report["missing"].items():
        print(f"  left out: {who}: {why}")


def machine():
    go = subprocess.run(["go", "version"], capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    said = dict(line.split(":", 1) for line in cpuinfo.read_text().splitlines() if ":" in line) if cpuinfo.exists() else {}
    said = {key.strip(): value.strip() for key, value in said.items()}
    model = said.get("model name") or platform.processor() or platform.machine()
    flags = set(said.get("flags", said.get("Features", "")).split())
    units = [unit for unit in UNITS if unit in flags]
    return {"processor": model, "units": units, "cores": os.cpu_count(), "go": go, "python": platform.python_version(), "racflow": commit}


def versions():
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


main()
