"""Runs the programs of examples/cluster, kills a process of each that answers, and compares their answers with those of racflow run.

    engines.py RACFLOW ROWS                     runs all
    engines.py job FOLDER PROGRAM INPUT OUTPUT  runs a program, in which a process kills itself once
"""
import csv
import json
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pyarrow.parquet
import racflow

ROOT = pathlib.Path(__file__).parents[1]
DEADLINE = 60  # seconds in which what is killed has to be gone
FATAL = "This row ends the process that answers it."


class Killed(racflow.Predictor):
    """Kills the process that has answered a certain batch before it hands the answers on, once."""

    mark = ""

    def __call__(self, batch):
        answers = super().__call__(batch)
        if FATAL in list(map(str, batch["text"])) and not os.path.exists(self.mark):
            pathlib.Path(self.mark).write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return answers


def job(folder, program, *arguments):
    Killed.mark = os.path.join(folder, "killed")
    racflow.Predictor = Killed
    if pathlib.Path(program).parent.name == "ray":
        import ray

        ray.init(num_cpus=2, include_dashboard=False, _temp_dir=folder)
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


def write(folder, count):
    """Writes a pipeline, and rows: two have no text, one stands for FATAL."""
    shutil.copy(ROOT / "examples/intent/train.tsv", folder)
    text = (ROOT / "pipelines/intent.hcl").read_text()
    for old, new in {'"minilm"': '"hashing"', 'default = "learned"': 'default = "soft"', "../examples/intent/train.tsv": "train.tsv", "../examples/intent/test.tsv": "tickets.parquet"}.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "pipeline.hcl").write_text(text)
    with open(ROOT / "examples/intent/test.tsv") as file:
        texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")]
    rows = []
    for i in range(count):
        text = f"{texts[i % len(texts)]} {texts[i * 7 % 11 + i // len(texts) % 200]}"
        rows.append({"number": f"n{i}", "text": {count // 5: "", count // 2: FATAL, count - 9: None}.get(i, text)})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "tickets.parquet", row_group_size=count // 4)


def answers(folder):
    """Returns the rows of Parquet files in the order of their names."""
    return [row for file in sorted(folder.glob("*.parquet")) for row in pyarrow.parquet.read_table(file).to_pylist()]


def left(program):
    """Returns the processes of a program that are still there."""
    found = []
    for link in pathlib.Path("/proc").glob("[0-9]*/exe"):
        try:
            found += [link.parent.name] if os.readlink(link) == str(program) else []
        except OSError:
            pass  # it has ended
    return found


def main(binary, count):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="engines-", dir="/tmp"))  # short, because Ray's sockets are in it
    try:
        compare(folder, shutil.copy(binary, folder / "racflow"), int(count))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(folder, program, count):
    write(folder, count)
    env = os.environ | {
        "RACFLOW_BINARY": str(program), "RAY_USAGE_STATS_ENABLED": "0",
        "PYSPARK_SUBMIT_ARGS": "--master local[2,4] --driver-java-options -XX:TieredStopAtLevel=1 --conf spark.sql.files.maxPartitionBytes=60k pyspark-shell",
    }
    run = subprocess.run([program, "run", "--output", "run.jsonl", "pipeline.hcl"], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 3, run.stderr  # two rows failed
    want = [json.loads(line) for line in open(folder / "run.jsonl")]
    assert len(want) == count
    parts(folder, program, env)
    for engine in ("ray", "spark"):
        (folder / "killed").unlink(missing_ok=True)
        script = str(ROOT / "examples/cluster" / engine / "answer.py")
        command = [sys.executable, __file__, "job", str(folder), script, "tickets.parquet", engine]
        with open(folder / "log", "w+") as log:
            code = subprocess.run(command, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT).returncode
            log.seek(0)
            assert code == 0, log.read()
        assert (folder / "killed").exists(), f"{engine}: nothing was killed"
        got = answers(folder / engine)
        order = [int(row["number"][1:]) for row in got]
        moved = [f"{at}: row {number}" for at, number in enumerate(order) if at != number]
        found = f"{engine}: {len(order)} of {count} rows, {len(set(order))} different ones; places with other rows: {moved[:5]}, files: {sorted(file.name for file in (folder / engine).glob('*'))}"
        assert sorted(order) == list(range(count)), found
        assert not moved or engine == "ray", found
        if moved:  # examples/cluster says so
            print("in another order:", found)
            got.sort(key=lambda row: int(row["number"][1:]))
        for row, one in zip(got, want):
            expected = (one["answer"], one.get("confidence"), one["flagged"], "error" in one)  # the words of its reason are serve's
            assert (row["answer"], row["confidence"], row["flagged"], row["error"] is not None) == expected, f"{engine}: {row}, and racflow run: {one}"
        until = time.monotonic() + DEADLINE
        while running := left(program):
            assert time.monotonic() < until, f"{engine}: these processes are left: {running}"
            time.sleep(0.1)
        print(f"{engine}: {count} rows have the answers of racflow run, although a process was killed that answered them")


def parts(folder, program, env):
    """Does what Slurm does with a job script: starts it for each task of the array."""
    for task in range(1, 9):
        shutil.copytree(folder / ".racflow", folder / f"part-{task}", ignore=shutil.ignore_patterns("runs"))  # with the knowledge
        more = {"PATH": f"{folder}:{env['PATH']}", "SLURM_ARRAY_TASK_ID": str(task)}
        done = subprocess.run(["bash", ROOT / "examples/cluster/slurm/run.sh"], cwd=folder, env=env | more, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    runs = sorted(map(str, folder.glob("part-*/runs/run-*")))
    merged = subprocess.run([program, "runs", "merge", *runs, "--output", "merged.jsonl"], cwd=folder, capture_output=True, text=True)
    assert merged.returncode == 3, merged.stderr
    assert (folder / "merged.jsonl").read_bytes() == (folder / "run.jsonl").read_bytes()
    print(f"slurm: {len(runs)} parts are merged to the bytes of racflow run")


if sys.argv[1] == "job":
    job(*sys.argv[2:])
else:
    main(*sys.argv[1:])
