"""What is measured, and what is checked so that the times mean the same work.

A check takes every contender's answers and returns figures to report: shares
of the queries or of the hits, 1.000 where a contender finds what it should.
"""

import contender

ALL_CORES = 0


# A measure: its contenders (racflow is always one), the threads they get, its
# check, and its rows. A row: title, task, figure ("ms" of wall time, "cpu" of
# processor time in ms, "whole"), and the ratio that racflow should keep to by
# peer. Every ratio is racflow's time over the peer's.
def measures():
    return {
        "dense": {
            "title": "exact top 60 of 100,000 x 384", "peers": "peers/dense.py",
            "contenders": ["faiss", "hnswlib"], "check": recall, "rows": [
                ("single query", "single", "ms", {"faiss": 0.35}),
                ("batch of 64, per query", "batch", "ms", {"faiss": 1.3}),
            ]},
        "bm25": {
            "title": "BM25 top 10 of 100,000 texts, p50", "peers": "peers/bm25.py",
            "contenders": ["tantivy", "bm25s"], "check": lucene, "rows": [
                ("3 words", "words3", "ms", {"tantivy": 1.0}),
                ("16 words", "words16", "ms", {"tantivy": 0.5}),
            ]},
        "embed": {
            "title": "MiniLM, processor time per text", "peers": "peers/embed.py",
            "contenders": ["sentence-transformers", "onnxruntime"], "check": cosine, "rows": [
                ("16 tokens", "short", "cpu", {"sentence-transformers": 1 / 2.2, "onnxruntime": 1 / 1.1}),
                ("200 tokens", "long", "cpu", {"sentence-transformers": 1 / 1.6, "onnxruntime": 1 / 0.9}),
            ]},
        "knn": {
            "title": "kNN classification, per answer", "peers": "peers/knn.py", "threads": ALL_CORES,
            "contenders": ["chromadb"], "check": None, "rows": [
                ("texts, warm", "eval", "ms", {"chromadb": 1 / 4}),
                ("texts, from program start", "eval", "whole", {}),
                ("vectors given", "given", "ms", {"chromadb": 1 / 5}),
            ]},
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
