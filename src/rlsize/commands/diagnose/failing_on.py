"""`--fail-on` of `rlsize diagnose`: on which verdicts and comparisons it exits with 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rlsize.facts.evidence import Diagnosis
    from rlsize.shell.inputs import Inputs
    from rlsize.verdicts.before_after import Compared

_WORSE = "worse"
FAILING = {
    "any": "",
    "worse": "",
    "regressed": "trainer regressed",
    "sync": "sync stall",
    "starving": "starving trainer",
    "backlog": "growing backlog",
    "oversized": "oversized and held back",
    "limbo": "neither side at its limit",
    "unclear": "unclear",
}
"""What `--fail-on` takes: the verdict of each word."""


def failing_words(inputs: Inputs, text: str | None, *, compared: bool) -> list[str]:
    """
    The words of `--fail-on`; a fault for those that could never fail.

    Args:
        inputs: Takes the faults.
        text: As it was typed; None without the flag.
        compared: Whether there is a baseline.
    """
    found = [word.strip() for word in (text or "").split(",") if word.strip()]
    for word in found:
        if word not in FAILING:
            inputs.fault(f"{word[:40]!r} is unknown", "--fail-on", suggestion(word, FAILING))
    if text is not None and not found:
        inputs.fault("names nothing to fail on", "--fail-on", f"known: {', '.join(FAILING)}")
    if _WORSE in found and not compared:
        inputs.fault("worse than what is not said", "--fail-on", "give the baseline, as in --before before.yaml")
    return found


def fails(words: Collection[str], found: Diagnosis, compared: Iterable[Compared]) -> bool:
    """Whether the exit code is to be 1."""
    worse = any(one.outcome == "worse" for one in compared)
    verdicts = {FAILING[word] for word in words}
    return (_WORSE in words and worse) or found.verdict in verdicts or ("any" in words and (worse or bool(found.steps)))
