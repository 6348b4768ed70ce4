"""A decision: what people see of an answer at first, below its headline; a command says it in parts, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.reports.wording import band, origin_word, shown, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.facts.figure import Figure
    from rlsize.loop.assumed import Assumption
    from rlsize.reports.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    The parts of a decision: sentences of each, the most important first; later ones go where there is no room.

    Args:
        take: What is to be done, in detail.
        figures: Keys of the results that a reader decides by.
        why: What the answer follows from.
        sure: How sure it is, and what it is least sure of.
        cheapest: What costs least among what may be as good.
        change: What would change it.
        assumed: What nobody said and that moves the answer, all of which is shown; None where nobody worked it out.
        done: What was written or is left to do by hand; all of it is shown.
        then: The next command.
        table: Name of the table that is the answer itself, of which the rows around the marked one are shown.
    """

    take: Sequence[str] = ()
    figures: Sequence[str] = ()
    why: Sequence[str] = ()
    sure: Sequence[str] = ()
    cheapest: Sequence[str] = ()
    change: Sequence[str] = ()
    assumed: Sequence[Assumption] | None = None
    done: Sequence[str] = ()
    then: str = ""
    table: str = ""

    def parts(self, report: Report) -> Iterator[tuple[str, Sequence[str]]]:
        """
        Label and sentences of each part that there is.

        Args:
            report: The answer that this is the decision of.
        """
        known = {figure.key: figure for figure in report.results}
        told = "; ".join(figure_words(known[key]) for key in self.figures if key in known)
        whole = ", ".join(one.told for one in self.assumed or ()) or "nothing that moves it by more than 5 %"
        every: tuple[tuple[str, Sequence[str]], ...] = (
            ("take", self.take),
            ("figures", [told] if told else []),
            ("why", self.why),
            ("sure", self.sure),
            ("cheapest", self.cheapest),
            ("change", self.change),
            ("assumed", [] if self.assumed is None else [whole]),
            ("unused", [" ".join(f"{text.removesuffix('.')}." for text in report.unused)] if report.unused else []),
            ("done", [" ".join(self.done)] if self.done else []),
            ("next", [f"{self.then}; --full shows all" if self.then else "--full shows all"]),
        )
        head = report.headline.lower()
        for label, texts in every:
            new = [text for text in texts if text.lower().removesuffix(".") not in head]  # said once is enough
            if new:
                yield label, new


def figure_words(figure: Figure) -> str:
    """
    A figure in a sentence, with its band and where it comes from.

    >>> from rlsize.facts.figure import Figure
    >>> figure_words(Figure(key="step_seconds", value=75.39, band=(59.94, 105.9), provenance="predicted"))
    'step time 75.39 s (59.94 to 105.9, predicted)'
    >>> figure_words(Figure(key="cost_usd", value=None, missing="--gpu-hour"))
    'cost needs --gpu-hour'
    """
    text = f"{words(figure.key)} {shown(figure, figure.key, '')}"
    if not figure.known:
        return text
    said = [band(figure), origin_word(figure), "" if figure.verified else "unverified"]
    return f"{text} ({', '.join(filter(None, said))})"
