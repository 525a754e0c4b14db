"""Vector search: the 60 nearest of 100,000 vectors by inner product."""

import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from contender import each, matrix, serve

NEAREST, SINGLES, BATCH = 60, 64, 64


def faiss(vectors, threads):
    """Exact, as racflow is, each query at faiss's best: its default for single
    ones, and for batches BLAS, which this version uses below 128,000 queries
    only when it is told. (BLAS allowed for all doubles the time of single ones.)"""
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    default = faiss.cvar.distance_compute_blas_threshold

    def search(batch):
        faiss.cvar.distance_compute_blas_threshold = default if len(batch) == 1 else 1
        return index.search(batch, NEAREST)

    return search


def hnswlib(vectors, threads):
    """Approximate: what speed costs in recall elsewhere."""
    import hnswlib

    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(max_elements=len(vectors), ef_construction=100, M=16)
    index.add_items(vectors)
    index.set_num_threads(threads)
    index.set_ef(100)
    
    def search(batch):
        rows, distances = index.knn_query(batch, k=NEAREST)
        return 1 - distances, rows

    return search


def found(search, batches):
    """Rows with their scores, for each query."""
    rows = []
    for batch in batches:
        scores, numbers = search(batch)
        rows.extend(list(zip(n, s)) for n, s in zip(numbers.tolist(), scores.tolist()))
    return rows


def main(name, data, threads):
    data = pathlib.Path(data)
    queries = matrix(data / "queries.f32")
    search = {"faiss": faiss, "hnswlib": hnswlib}[name](matrix(data / "texts.f32"), int(threads))
    single = [queries[i:i + 1] for i in range(SINGLES)]
    batches = [queries[i:i + BATCH] for i in range(0, len(queries), BATCH)]

    def batch():
        took = []
        for b in batches:
            start = time.perf_counter()
            search(b)
            took.append(1000 * (time.perf_counter() - start) / len(b))
        return {"n": len(queries), "ms": statistics.median(took)}

    answers = {"single": found(search, single), "batch": found(search, batches)}
    serve({"single": each(single, search), "batch": batch}, answers)


main(*sys.argv[1:])
