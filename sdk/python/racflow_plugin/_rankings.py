"""The rankings of rerankers as columns."""
from __future__ import annotations

import itertools
import math

from ._columns import is_array
from ._errors import StageError
from ._records import Ranked
from ._results import Failed


def rankings(results: list, failed: Failed, rows, reply) -> None:
    counts = rows.candidates.offsets
    lists = []
    for i, result in enumerate(failed.take(results)):
        try:
            lists.append([] if i in failed else _ranking(result, counts[i + 1] - counts[i]))
        except Exception as error:
            failed[i] = error
            lists.append([])
    reply.n, out = len(lists), reply.rankings
    out.offsets.extend(itertools.accumulate(map(len, lists), initial=0))
    out.candidate.extend([at for one in lists for at, _ in one])
    out.score.extend([score for one in lists for _, score in one])


def _ranking(result, n: int) -> list[tuple[int, float]]:
    """Scores, one for each candidate, in their order; or the ranking itself, best first."""
    if result is None:
        raise StageError("the stage returned None for a row; return a score for each candidate, or a list of Ranked")
    ranking = result.tolist() if is_array(result) else list(result)
    if not ranking:
        return []
    if isinstance(ranking[0], Ranked):
        ranking = [(one.candidate, one.score) for one in ranking]
    elif not isinstance(ranking[0], tuple):
        if len(ranking) != n:
            raise StageError(f"the stage returned {len(ranking)} scores for {n} candidates")
        scores = [float(score) for score in ranking]
        if not all(map(math.isfinite, scores)):
            raise StageError("a score is not a finite number")
        return sorted(enumerate(scores), key=lambda pair: -pair[1])
    seen = set()
    for at, _ in ranking:
        if not 0 <= at < n:
            raise StageError(f"the stage ranked candidate {at} of {n}")
        if at in seen:
            raise StageError(f"the stage ranked candidate {at} twice")
        seen.add(at)
    return ranking
