"""The samples of voters and the verdicts of elections as columns."""
from __future__ import annotations

import itertools

from ._columns import Names, column, offsets, some
from ._errors import StageError, valid
from ._records import Answer, Sample, Verdict
from ._results import Failed, per_row


def _samples(result) -> list:
    """The samples of a row: a label, a dict of weights by label, a Sample, None, or a list of those."""
    if result is None:
        return []
    return [_sample(one) for one in result] if isinstance(result, (list, tuple)) and not isinstance(result, Answer) else [_sample(result)]


def _sample(one) -> Sample:
    if isinstance(one, Sample):
        return one
    if isinstance(one, str):
        return Sample([Answer(one)])
    if isinstance(one, Answer):
        return Sample([one])
    if isinstance(one, dict):
        return Sample(sorted((Answer(label, float(weight)) for label, weight in one.items()), key=lambda answer: -answer.weight))
    raise StageError(f"a voter returned {type(one).__name__} for a row; return a label, a dict of weights by label, a Sample, None, or a list of those")


def samples(results: list, failed: Failed, rows, reply) -> None:
    lists, names = per_row(results, failed, _samples, list), Names()
    reply.n, out = len(lists), reply.samples
    out.offsets.extend(itertools.accumulate(map(len, lists), initial=0))
    all_samples = [sample for one in lists for sample in one]
    answers = [answer if isinstance(answer, Answer) else Answer(answer) for sample in all_samples for answer in sample.answers]
    out.answer_offsets.extend(itertools.accumulate((len(sample.answers) for sample in all_samples), initial=0))
    out.answer.extend([names.number(answer.label) for answer in answers])
    out.names.extend(names.all())
    out.weight.extend([answer.weight for answer in answers])
    out.reason.extend(some([valid(answer.reason) for answer in answers]))
    out.reading.extend(some([valid(answer.reading) for answer in answers]))
    out.explanation.extend(some([valid(answer.explanation) for answer in answers]))
    out.voter.extend(some([valid(sample.voter) for sample in all_samples]))
    for name in ("input_tokens", "output_tokens", "cached_tokens"):
        getattr(out, name).extend(some([getattr(sample, name) for sample in all_samples]))
    for name in ("text", "model"):
        getattr(out, name).extend(some([valid(getattr(sample, name)) for sample in all_samples]))
    for name in ("key", "distance"):
        getattr(out, name).extend(some([getattr(sample, name) for sample in all_samples]))


def samples_of(message, n: int) -> list[list[Sample]]:
    total, answers = max(len(message.answer_offsets) - 1, 0), len(message.answer)
    rows, each_sample = offsets("samples", message.offsets, n, total), offsets("samples.answers", message.answer_offsets, total, answers)
    names, weights = list(message.names), list(message.weight)
    accepted, reasons = column("samples.accepted", message.accepted, answers, False), column("samples.reason", message.reason, answers, "")
    readings, why = column("samples.reading", message.reading, answers, ""), column("samples.explanation", message.explanation, answers, "")
    ballots = [Answer(names[at], weights[i], accepted[i], reasons[i], readings[i], why[i]) for i, at in enumerate(message.answer)]
    parts = [column("samples." + name, getattr(message, name), total, missing) for name, missing in (
        ("voter", ""), ("input_tokens", 0), ("output_tokens", 0), ("cached_tokens", 0), ("text", ""), ("model", ""), ("key", b""), ("distance", 0.0))]
    made = [Sample(ballots[a:b], *part) for (a, b), *part in zip(itertools.pairwise(each_sample), *parts)]
    return [made[a:b] for a, b in itertools.pairwise(rows)]


def _verdict(result) -> Verdict:
    if result is None:
        return Verdict(reason="the election gave no answer")
    if not isinstance(result, Verdict):
        raise StageError(f"the stage returned {type(result).__name__} for a row; return a Verdict or None")
    return result


def verdicts(results: list, failed: Failed, rows, reply) -> None:
    every = per_row(results, failed, _verdict, Verdict)
    reply.n, out = len(every), reply.verdicts
    out.answer.extend([valid(one.answer) for one in every])
    out.agreement.extend([one.agreement for one in every])
    out.reason.extend(some([valid(one.reason) for one in every]))
    out.confidence.extend(some([one.confidence for one in every]))
    out.unknown.extend(some([one.unknown for one in every]))
    if any(one.labels for one in every):
        out.label_offsets.extend(itertools.accumulate((len(one.labels) for one in every), initial=0))
        out.label.extend(valid(label) for one in every for label, _ in one.labels)
        out.label_confidence.extend(confidence for one in every for _, confidence in one.labels)
