"""How keys, figures and missing values are put into words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlsize.estimates.figures import ends
from rlsize.facts.figure import Figure, Value
from rlsize.units import short, show, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.calibration import OwnMemory
    from rlsize.reports.report import Cell

_ENDINGS = (
    ("_tokens_per_second", " rate"),
    ("_tokens_per_gpu_second", " rate"),
    ("_bytes_per_second", " bandwidth"),
    ("_seconds", " time"),
    ("_bytes", ""),
    ("_usd", ""),
    ("_fraction", ""),
    ("_per_second", " per second"),
    ("_steps", ""),
)
# Nouns that say by themselves what they are: no "supply rate", no "age time".
_COMPLETE = (
    "supply", "consumption", "required", "age", "cap", "absorbed", "window", "swap", "goodput", "bandwidth", "seconds",
)  # fmt: skip
_SPECIAL = {
    "backlog_tokens_per_second": "backlog growth",
    "sync_bytes": "sync size",
    "worst_phase_bytes_per_gpu": "fullest phase",
    "transfer_bytes": "transfer size",
    "tpot_seconds": "time per output token",
    "ttft_seconds": "time to first token",
}
_PREFIXES = ("expected_", "nameplate_")
_ROUNDING = 1e-9  # of what is on the order of 1, or of seconds
_LEAST_SHARE = 0.0005  # 0.1 %, rounded


def words(key: str) -> str:
    """
    A key as a person would say it; its unit stands beside the value.

    >>> words("expected_trainer_idle_fraction"), words("matched_instances"), words("backlog_tokens_per_second")
    ('expected trainer idle', 'matched instances', 'backlog growth')
    >>> words("sync_seconds"), words("loop_tokens_per_second"), words("oldest_sample_age_seconds")
    ('sync time', 'loop rate', 'oldest sample age')
    """
    prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), "")
    base = key.removeprefix(prefix)
    said = _SPECIAL.get(base) or _without_unit(base)
    return (prefix.replace("_", " ") + said).replace("gpu", "GPU").replace("kv ", "KV ")


def peak_words(memory: OwnMemory | None) -> list[str]:
    """What a log's memory peak says of a run; nothing where it has none."""
    if memory is None:
        return []
    peak, gap = show(memory.measured, "_bytes"), show(abs(memory.own), "_bytes")
    kept = ", as its allocator kept it (its cache is in that, so tensors took less)" if memory.reserved else ""
    side = "more" if memory.own > 0 else "less"
    return [f"The run's trainer took {peak} of a GPU{kept}: {gap} {side} than the model knows of its {memory.phase}."]


def _without_unit(key: str) -> str:
    for ending, noun in _ENDINGS:
        if key.endswith(ending):
            name = key.removesuffix(ending).replace("_", " ")
            return name if name.endswith(_COMPLETE) else name + noun
    return key.replace("_", " ")


def shown(cell: Cell, key: str, doubt: str = " (unverified)", like: float | None = None) -> str:
    """
    A cell for people: the value with its unit, or what would fill it.

    Args:
        cell: A figure or a value.
        key: What it is of.
        doubt: What stands behind a figure that rests on one that nobody verified.
        like: Of a time, another one that stands beside it, whose unit it takes.
    """
    if not isinstance(cell, Figure):
        return show(cell, key, like)
    if not cell.known:
        return f"needs {cell.missing}" if cell.missing else "-"
    text = show(cell.value, key, like)
    return text if cell.verified else f"{text}{doubt}"


def band(figure: Figure) -> str:
    """The 80 % interval for people; empty where every input is a point."""
    if figure.band is None:
        return ""
    if unit_of(figure.key) == "tok/s":
        return f"{short(figure.band[0])} to {short(figure.band[1])}"
    low, high = (bare(show(end, figure.key, figure.number), figure.key) for end in figure.band)
    units = {end.partition(" ")[2] for end in (low, high)}
    if len(units) > 1:
        return f"{low} to {high}"
    return f"{low.partition(' ')[0]} to {high.partition(' ')[0]}"  # the value beside it says the unit


def interval(figure: Figure) -> str:
    """The band in a sentence, each end in the unit of the value; the number twice where it is a point."""
    low, high = (show(end, figure.key, figure.number) for end in ends(figure))
    return f"{low} to {high}"


def origin(figure: Figure) -> str:
    """Where a figure comes from, in a few words."""
    if not figure.known:
        return ""
    if figure.provenance == "predicted" and figure.equation:
        return f"predicted by {figure.equation}"
    return f"{figure.provenance}: {figure.source}" if figure.source else figure.provenance


def inputs_line(figures: Iterable[Figure]) -> str:
    """The inputs with their provenance, in a line."""
    told = []
    for figure in figures:
        spread = f" ± {show(figure.deviation, figure.key)}" if figure.deviation else ""
        source = "from other inputs" if figure.equation else origin_word(figure)
        told.append(f"{words(figure.key)} {shown(figure, figure.key)}{spread} ({source})")
    return "; ".join(told)


def origin_word(figure: Figure) -> str:
    """
    The provenance in a word; what a profile says of itself is the profile's word, not the user's.

    >>> origin_word(Figure(key="x", value=1, source="profile h100-sxm: memory")), origin_word(Figure(key="x", value=1))
    ('profile', 'given')
    """
    if figure.provenance == "given" and "profile " in figure.source.partition(":")[0]:
        return "profile"
    return figure.provenance


class Line(NamedTuple):
    """One line of the results: a quantity at nameplate, as expected with headroom, or just so."""

    name: str
    plain: Figure | None
    nameplate: Figure | None
    expected: Figure | None

    @property
    def main(self) -> Figure:
        """The figure that the line is about: the expected one where there is one."""
        found = self.expected or self.plain or self.nameplate
        if found is None:
            raise ValueError(f"{self.name} has no figure")
        return found

    @property
    def band(self) -> str:
        """The 80 % interval of the main figure, or of its nameplate twin where only that is known."""
        return band(self.main) or (band(self.nameplate) if self.nameplate and not self.main.known else "")


def lines(figures: Iterable[Figure]) -> list[Line]:
    """Figures with their nameplate or expected twins beside them, in the order of the first of each pair."""
    by_key = {figure.key: figure for figure in figures}
    result: dict[str, Line] = {}
    for key in by_key:
        base = key.removeprefix("expected_").removeprefix("nameplate_")
        if base in result:
            continue
        plain, nameplate, expected = (by_key.get(f"{prefix}{base}") for prefix in ("", "nameplate_", "expected_"))
        if plain and expected and not nameplate:
            plain, nameplate = None, plain
        elif plain and nameplate and not expected:
            plain, expected = None, plain
        result[base] = Line(words(base), plain, nameplate, expected)
    return list(result.values())


def numbered(count: int, noun: str) -> str:
    """
    A number of things.

    >>> numbered(1, "instance"), numbered(8, "GPU")
    ('1 instance', '8 GPUs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def sentence(text: str) -> str:
    """Text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def row_name(key: str) -> str:
    """The name of a result's row; with the unit of a token rate, which is too long to stand beside each value."""
    unit = unit_of(key)
    return f"{words(key)} ({unit})" if unit.startswith("tok") else words(key)


def bare(text: str, key: str) -> str:
    """Text without the unit of a rate, where the name of the row says it."""
    unit = unit_of(key)
    return text.replace(f" {unit}", "").replace(unit, "") if unit.startswith(("tok", "/")) else text


def gap(value: float, key: str) -> str:
    """
    A difference in the unit of a key; that of shares in percentage points, as it is no share of anything.

    >>> gap(0.012, "trainer_idle_fraction"), gap(0.2, "cost_per_step_usd")
    ('1.2 pp', '$0.2')
    """
    return show(value, key).replace("%", "pp") if unit_of(key) == "%" else show(value, key)


def signed(value: float, key: str) -> str:
    """
    The same with its sign; a difference of shares that one decimal does not show is none.

    >>> signed(-0.2, "cost_per_step_usd"), signed(0.0, "step_seconds"), signed(0.0003, "trainer_idle_fraction")
    ('-$0.2', '0 s', '0.0 pp')
    """
    if unit_of(key) == "%" and abs(value) < _LEAST_SHARE:
        value = 0.0
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{gap(abs(value), key)}"


def percent(value: float) -> str:
    """
    A relative change, with its sign where one decimal shows it.

    >>> percent(0.1234), percent(-3.2), percent(-0.0004)
    ('+12.3 %', '-320.0 %', '0.0 %')
    """
    return signed(value, "_fraction").replace("pp", "%")


def settled(value: float) -> float:
    """The value, or 0 where it is only rounding."""
    return 0.0 if abs(value) < _ROUNDING else value


def counted(values: Mapping[str, Value], source: str = "counted") -> tuple[Figure, ...]:
    """What an answer was counted to, or what else is told with it, as results; what is None is none."""
    return tuple(
        Figure(key=key, value=value, provenance="predicted", source=source)
        for key, value in values.items()
        if value is not None
    )
