"""Answers as Markdown: one row for each counter, and one for each case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peers.answers import VERDICTS, Answer, verdict
from peers.cases import CASES
from peers.environments import PEERS
from peers.worker import NOT_FOR_THIS

Answers = Mapping[str, Mapping[str, Answer]]

_SIGNS = {"right": "ok", "right+": "ok+", "warned": "warned", "silent": "**silent**", "crashed": "crash"}


def _judged(answer: Answer, others: Mapping[str, int]) -> str | None:
    """The verdict, None where the counter does not claim to answer."""
    if answer.error == NOT_FOR_THIS:
        return None
    case = CASES[answer.case]
    return verdict(answer, case.mac, case.also, others.get(answer.case, 0))


def summary(answers: Answers, names: Sequence[str], others: Mapping[str, int]) -> str:
    """How often each counter came to which verdict, and its seconds."""
    head = ("counter", "version", "asked", *VERDICTS, "seconds in all")
    lines = ["| " + " | ".join(head) + " |", "| --- | --- |" + " ---: |" * (len(head) - 2)]
    for peer, of in answers.items():
        judged = [_judged(of[name], others) for name in names]
        counts = [str(judged.count(each)) for each in VERDICTS]
        versions = sorted({answer.version for answer in of.values() if answer.version})
        seconds = sum(answer.seconds for answer in of.values())
        asked = len(judged) - judged.count(None)
        row = (PEERS[peer].title, ", ".join(versions), str(asked), *counts, f"{seconds:.1f}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def by_case(answers: Answers, names: Sequence[str], others: Mapping[str, int]) -> str:
    """Each case with the right MAC, and each counter's own figure where it is another."""
    head = ("case", "right MAC", *(PEERS[peer].title for peer in answers))
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for name in names:
        row = [name, f"{CASES[name].mac:,}"]
        for of in answers.values():
            row.append(_shown(of[name], others))
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _shown(answer: Answer, others: Mapping[str, int]) -> str:
    judged = _judged(answer, others)
    if judged is None:
        return "–"
    if answer.count is None or judged == "right":
        return _SIGNS[judged]
    return f"{_SIGNS[judged]} {answer.count.mac:,.0f}"


def exit_code(answers: Answers, names: Sequence[str], others: Mapping[str, int]) -> int:
    """1 if flopwatch was asked and is not right everywhere."""
    ours = answers.get("flopwatch", {})
    judged = [_judged(ours[name], others) for name in names if name in ours]
    return int(any(each not in ("right", None) for each in judged))
