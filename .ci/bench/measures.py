"""What is measured, and what is checked so that the times mean the same work.

A check takes every contender's answers and returns figures to report: shares
of the queries or of the hits, 1.000 where a contender finds what it should.
"""

import contender

ALL_CORES = 0
LENGTHS = {"short": "16 tokens", "long": "200 tokens"}


# A measure: its contenders (racflow is always one), the threads they get, its
# check, and its rows; with "arguments", what all of them are told besides. A row: title, task, figure ("ms" of wall time, "cpu" of
# processor time in ms, "whole", "used"), and the ratio that racflow should keep to by
# peer. Every ratio is racflow's time over the peer's.
def measures():
    return {
        "dense": {
            "title": "exact top 60 of 100,000 x 384", "peers": "peers/dense.py",
            "contenders": ["faiss", "hnswlib"], "check": recall, "rows": [
                ("single query", "single", "ms", {"faiss": 0.3}),
                ("batch of 64, per query", "batch", "ms", {"faiss": 0.4}),
            ]},
        "bm25": {
            "title": "BM25 top 10 of 100,000 texts, p50", "peers": "peers/bm25.py",
            "contenders": ["tantivy", "bm25s"], "check": lucene, "rows": [
                ("3 words", "words3", "ms", {"tantivy": 1.0}),
                ("16 words", "words16", "ms", {"tantivy": 0.5, "bm25s": 0.9}),
            ]},
        "embed": encoder("minilm", "int8", "MiniLM in int8", {
            "short": {"sentence-transformers": 0.4, "onnxruntime-int8": 0.8},
            "long": {"sentence-transformers": 0.4, "onnxruntime-int8": 0.8},
        }, ["sentence-transformers", "sentence-transformers-bfloat16", "onnxruntime", "onnxruntime-int8"]),
        "embed-float32": encoder("minilm", "float32", "MiniLM in float32", {"short": {}, "long": {}}, ["sentence-transformers", "onnxruntime"]),
        "base": encoder("base", "int8", "BERT of 110M parameters in int8", {"long": {"onnxruntime-int8": 0.8}}, ["onnxruntime-int8"]),
        "base-float32": encoder("base", "float32", "BERT of 110M parameters in float32", {"long": {"onnxruntime": 0.8}}, ["onnxruntime"]),
        "large": encoder("large", "int8", "BERT of 335M parameters in int8", {"long": {"onnxruntime-int8": 0.8}}, ["onnxruntime-int8"]),
        "large-float32": encoder("large", "float32", "BERT of 335M parameters in float32", {"long": {"onnxruntime": 0.8}}, ["onnxruntime"], rounds=3),
        "knn": {
            "title": "kNN classification, per answer", "peers": "peers/knn.py", "threads": ALL_CORES,
            "contenders": ["chromadb"], "check": None, "rows": [
                ("texts, warm", "eval", "ms", {"chromadb": 1 / 4}),
                ("texts, from program start", "eval", "whole", {}),
                ("vectors given", "given", "ms", {"chromadb": 1 / 5}),
            ]},
        "size": {
            "title": "200,000 examples of 150 labels by hashing, from the file to the answers", "peers": "peers/size.py", "rounds": 1,
            "contenders": ["scikit-learn"], "check": None, "rows": [("processor time", "build", "ms", {"scikit-learn": 1.0})],
        },
        "start": {
            "title": "one text, knowledge there", "threads": ALL_CORES, "contenders": [], "check": None, "rows": [
                ("minilm, processor time of all processes (aim: 350)", "minilm", "used", {}),
                ("minilm, clock", "minilm", "ms", {}),
                ("hashing, processor time of all processes", "hashing", "used", {}),
                ("--help, processor time (aim: 20)", "help", "used", {}),
            ]},
    }


def encoder(model, precision, name, aims, peers, **more):
    """A measure of an encoder's processor time; aims by length and peer."""
    return {
        "title": f"{name}, processor time per text", "peers": "peers/embed.py", "arguments": [model, precision],
        "contenders": peers, "check": cosine, "rows": [(LENGTHS[length], length, "cpu", aim) for length, aim in aims.items()], **more,
    }


def recall(answers, data):
    """Share of hits that brute force in float32 has among its 60 best."""
    import numpy

    vectors, queries = contender.matrix(data / "texts.f32"), contender.matrix(data / "queries.f32")
    similarity = queries @ vectors.T
    least = numpy.partition(similarity, -60, axis=1)[:, -60] - 1e-6
    checks = {}
    for name, tasks in answers.items():
        for task, rows in tasks.items():
            good = sum(similarity[i, int(n)] >= least[i] for i, row in enumerate(rows) for n, _ in row)
            checks[f"recall@60, {task}, {name}"] = float(good) / (60 * len(rows))
    return checks


def lucene(answers, _):
    """Share of queries whose 10 best are those of bm25s: the same scores, and
    the same texts but for those that tie with the last."""
    if "bm25s" not in answers:
        return {}
    checks = {}
    for task, expected in answers["bm25s"].items():
        same = sum(same_top(e, r) for e, r in zip(expected, answers["racflow"][task]))
        checks[f"top 10 as bm25s, {task}, racflow"] = same / len(expected)
    return checks


def same_top(expected, found):
    expected = [(n, s) for n, s in expected if s > 0]
    if len(expected) != len(found):
        return False
    close = all(abs(a - b) <= 1e-4 * a for (_, a), (_, b) in zip(expected, found))
    last = expected[-1][1] * (1 + 1e-4) if expected else 0
    above = [{int(n) for n, s in top if s > last} for top in (expected, found)]
    return close and above[0] == above[1]


def cosine(answers, _):
    """The lowest cosine between racflow's vectors and a peer's."""
    import numpy

    return {
        f"lowest cosine, {task}, {name}": float((numpy.array(answers["racflow"][task]) * numpy.array(tasks[task])).sum(1).min())
        for name, tasks in answers.items() if name != "racflow" for task in tasks
    }
