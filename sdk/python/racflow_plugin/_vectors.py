"""The vectors of embedders as a column."""
from __future__ import annotations

import array
import math

from ._columns import is_array, numpy
from ._errors import StageError
from ._results import Failed, listed


def normalize(vectors):
    """The vectors with norm 1; those that are all zero stay. An array of numpy gives one, lists give lists."""
    if is_array(vectors):
        np = numpy()
        vectors = np.asarray(vectors, np.float32)
        norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return vectors / np.where(norms > 0, norms, 1)
    out = []
    for vector in vectors:
        norm = math.sqrt(math.fsum(x * x for x in vector))
        out.append([x / norm for x in vector] if norm > 0 else list(vector))
    return out


def pack(vectors: list, dimension: int, failed: Failed) -> bytes:
    """Vectors one after the other; those that are None are zeros. One of another dimension fails alone."""
    packed, zeros = array.array("f"), [0.0] * dimension
    for i, vector in enumerate(vectors):
        if vector is None:
            packed.extend(zeros)
        elif len(vector) != dimension:
            failed[i] = StageError(f"a vector of dimension {len(vector)}, not {dimension}")
            packed.extend(zeros)
        else:
            packed.extend(vector)
    return packed.tobytes()


def embeddings(results, failed: Failed, n: int, dimension: int, reply) -> None:
    if is_array(results):
        np = numpy()
        results = np.ascontiguousarray(results, dtype="<f4")
        if results.shape != (n, dimension):
            raise StageError(f"the stage returned an array of shape {results.shape}, not of {(n, dimension)}")
        raw = results.tobytes()
    else:
        raw = pack(failed.take(listed(results, n)), dimension, failed)
    reply.n = n
    if n > 0:
        reply.dimension, reply.vectors = dimension, raw
