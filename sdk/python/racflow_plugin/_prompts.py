"""Prompts as columns."""
from __future__ import annotations

import itertools

from . import _wire
from ._columns import Names, column, offsets
from ._errors import StageError, valid
from ._records import Message, Prompt
from ._results import Failed, per_row


def _prompts(result) -> list[Prompt]:
    every = result if isinstance(result, (list, tuple)) else [result]
    for one in every:
        if not isinstance(one, (str, Prompt)):
            raise StageError(f"the stage returned {type(one).__name__} for a row; return a text, a Prompt, or a list of those")
    return [Prompt(one) if isinstance(one, str) else one for one in every]


def prompts(results: list, failed: Failed, rows, reply) -> None:
    lists, names = per_row(results, failed, _prompts, list), Names()
    every = [prompt for one in lists for prompt in one]
    reply.n, out = len(lists), reply.prompts
    out.offsets.extend(itertools.accumulate(map(len, lists), initial=0))
    out.text.extend([valid(prompt.text) for prompt in every])
    if any(prompt.messages for prompt in every):
        out.chat.extend([_wire.Chat(messages=[_wire.Message(role=m.role, text=valid(m.text), shared=m.shared) for m in prompt.messages]) for prompt in every])
    if any(prompt.labels or prompt.none or prompt.fields or prompt.passages is not None or prompt.levels for prompt in every):
        for prompt in every:
            allowed = out.allowed.add(labels=[names.number(label) for label in prompt.labels], none=valid(prompt.none), fields=[valid(name) for name in prompt.fields], levels=valid(prompt.levels))
            if prompt.passages is not None:  # none are some, too: the answer is a text then as well
                allowed.passages.SetInParent()
                allowed.passages.ids.extend(map(valid, prompt.passages))
    out.names.extend(names.all())


def prompts_of(message, n: int) -> list[list[Prompt]]:
    total = len(message.text)
    at, names = offsets("prompts", message.offsets, n, total), list(message.names)
    chats, allowed = column("prompts.chat", message.chat, total, None), column("prompts.allowed", message.allowed, total, None)
    made = []
    for text, chat, allow in zip(message.text, chats, allowed):
        prompt = Prompt(text, [Message(m.role, m.text, m.shared) for m in chat.messages] if chat else [])
        if allow is not None:
            prompt.labels, prompt.none, prompt.fields, prompt.levels = [names[k] for k in allow.labels], allow.none, list(allow.fields), allow.levels
            prompt.passages = list(allow.passages.ids) if allow.HasField("passages") else None
        made.append(prompt)
    return [made[a:b] for a, b in itertools.pairwise(at)]
