"""A made-up page that has everything a page may have, and one whose every word means harm."""

from __future__ import annotations

from rlsize.commands.report import Start, lesson_widget
from rlsize.facts.figure import Figure, Provenance, absent
from rlsize.reports.chart import Bar, Chart, Gantt, Mark, Panels, Series
from rlsize.reports.page import Page, Section, Widget, figures_table
from rlsize.reports.report import Column, Table

HOSTILE = (
    "</script><script>alert(1)</script>",
    "]]><!-- --><style>*{display:none}</style>",
    "\"'><img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b[0m \x07",
    "$\\frac{1}{$ & {0} {key} %s",
    "a|b`c`*d*\n# heading",
    "\u202egnp.exe \ud800",
)
"""Words that would break out of HTML, a script, XML, a terminal, matplotlib, a format string, Markdown, or text."""


def example_widget(**changed: float | str | None) -> Widget:
    """The widget of the example, some of its start changed."""
    start = Start(
        gpus=64, rollout_gpus=48, response_tokens=1536, rollout_gpu_rate=1966.08, trainer_gpu_rate=6100,
        prompts_per_step=64, group_size=8, max_staleness=2, gpu_hour=2.5, exposed_seconds=0.75,
    )  # fmt: skip
    fields = {name: getattr(start, name) for name in start.__slots__}
    return lesson_widget(Start(**{**fields, **changed}))


def example_page() -> Page:
    """A whole page: figures of every provenance, tables, pictures of several kinds, a widget."""
    return Page(
        title="Qwen3-32B GRPO on 64 H100",
        question="How should 64 H100 be split between rollout and training so that a step stays under $0.50 and "
        "samples are at most two optimizer steps stale?",
        recommendation="Run 24 rollout instances of 2 GPUs beside a trainer of 16 GPUs, with at most 2 steps of "
        "staleness: a step takes 8.9 s and costs $0.40, and no other split of these GPUs is quicker.",
        facts=_facts(),
        sections=(_plan(), _alternatives(), _sensitivity(), _assumptions(), _verifying()),
        widget=example_widget(),
        warnings=(
            "The rollout rate was measured on one node; nobody has measured it on six.",
            "Prices are of November 2026 and have not been confirmed with the provider.",
        ),
        command="rlsize report examples/grpo-32b.yaml --seed 0 -o review.html",
        made_with="rlsize 0.9.0; facts 3f9c2a7e; seed 0",
    )


def hostile_page() -> Page:
    """A page whose every word comes from a file that means harm."""
    word = " ".join(HOSTILE)
    table = Table(
        title=word,
        columns=(Column("a", word, "left"), Column("b", word, "left", wide=True)),
        rows=tuple({"a": text, "b": Figure(key="b", value=text, source=word)} for text in HOSTILE),
        marked=0,
        note=word,
    )
    picture = Chart(
        title=word, x_label=word, y_label=word, subtitle=word, marks=(Mark(at=1.0, label=word),),
        series=tuple(Series(name=text, xs=(0.0, 1.0, 2.0), ys=(1.0, 2.0, 3.0)) for text in HOSTILE),
    )  # fmt: skip
    bars = Chart(
        title=word, x_label=word, y_label=word, kind="bars",
        series=(Series(name=word, xs=HOSTILE, ys=tuple(map(float, range(1, 1 + len(HOSTILE))))),),
    )  # fmt: skip
    section = Section(title=word, text=(word,), listed=HOSTILE, tables=(table,), pictures=(picture, bars))
    return Page(
        title=word, question=word, recommendation=word, facts=(Figure(key="x_seconds", value=word, source=word),),
        sections=(section,), widget=example_widget(), warnings=HOSTILE, command=word, made_with=word,
    )  # fmt: skip


def _figure(
    key: str,
    value: float | str,
    provenance: Provenance = "predicted",
    source: str = "",
    band: tuple[float, float] | None = None,
) -> Figure:
    return Figure(key=key, value=value, provenance=provenance, source=source, band=band)


def _facts() -> tuple[Figure, ...]:
    return (
        _figure("step_seconds", 8.9, band=(8.1, 10.2)),
        _figure("cost_per_step_usd", 0.396, band=(0.36, 0.453)),
        _figure("steps_per_day", 9708.0, band=(8471.0, 10667.0)),
        _figure("loop_tokens_per_second", 88363.0, band=(77100.0, 97100.0)),
        _figure("trainer_idle_fraction", 0.024, band=(0.0, 0.11)),
        _figure("staleness_steps", 2, "given", "scenario: placement.max_staleness"),
        _figure("gpus", 64, "given", "scenario: cluster.gpus"),
        absent("cost_per_run_usd", "--steps"),
    )


def _plan() -> Section:
    gantt = Gantt(
        title="Both sides work at once; the sync takes three quarters of a second",
        x_label="seconds",
        lanes=("rollout", "trainer"),
        spans=(
            *(Bar(lane="rollout", start=8.9 * n, end=8.9 * n + 8.1, name="generation") for n in range(3)),
            *(Bar(lane="trainer", start=8.9 * n, end=8.9 * n + 7.9, name="update", role="update") for n in range(3)),
            *(Bar(lane="rollout", start=8.9 * n + 8.1, end=8.9 * n + 8.9, name="sync", role="sync") for n in range(3)),
        ),
    )
    placement = Table(
        title="Placement",
        columns=(
            Column("side", "side", "left"),
            Column("gpus", "GPUs"),
            Column("layout", "layout", "left"),
            Column("busy_seconds", "busy"),
            Column("idle_fraction", "idle"),
        ),
        rows=(
            {
                "side": "rollout", "gpus": 48, "layout": "24 instances, tensor parallel 2",
                "busy_seconds": _figure("busy_seconds", 8.1, "measured", band=(7.4, 9.3)),
                "idle_fraction": _figure("idle_fraction", 0.0),
            },
            {
                "side": "trainer", "gpus": 16, "layout": "FSDP 16",
                "busy_seconds": _figure("busy_seconds", 7.9, band=(7.2, 8.8)),
                "idle_fraction": _figure("idle_fraction", 0.024),
            },
        ),
    )  # fmt: skip
    return Section(
        title="The plan",
        text=("Generation and training overlap; the weight sync is the only part of a step that nothing hides.",),
        pictures=(gantt,),
        tables=(placement,),
    )


def _alternatives() -> Section:
    splits = ((40, 24, 10.4, 0.462), (44, 20, 9.6, 0.427), (48, 16, 8.9, 0.396), (52, 12, 10.9, 0.484))
    table = Table(
        title="Splits of 64 GPUs",
        columns=(
            Column("rollout_gpus", "rollout GPUs", "left"),
            Column("trainer_gpus", "trainer GPUs"),
            Column("step_seconds", "step time"),
            Column("cost_usd", "cost"),
            Column("why", "why not", "left", wide=True),
        ),
        rows=tuple(
            {
                "rollout_gpus": rollout,
                "trainer_gpus": trainer,
                "step_seconds": _figure("step_seconds", step, band=(0.9 * step, 1.15 * step)),
                "cost_usd": _figure("cost_usd", cost),
                "why": "" if rollout == 48 else "one side waits for the other for more than a tenth of the step",
            }
            for rollout, trainer, step, cost in splits
        ),
        marked=2,
        note="Instances have two GPUs each; the trainer needs a multiple of four.",
    )
    names = tuple(f"{rollout} + {trainer}" for rollout, trainer, *_ in splits)
    bars = Chart(
        title="48 + 16 wastes the least",
        subtitle="Seconds of a step, by what the trainer does",
        x_label="rollout + trainer GPUs",
        y_label="seconds of a step",
        kind="stacked",
        series=(
            Series(name="update", xs=names, ys=(5.3, 6.3, 7.9, 10.2), role="update"),
            Series(name="waiting for samples", xs=names, ys=(4.4, 2.6, 0.3, 0.0), role="waiting"),
            Series(name="weight sync", xs=names, ys=(0.7, 0.7, 0.7, 0.7), role="sync"),
        ),
    )
    return Section(title="Alternatives", pictures=(bars,), tables=(table,))


def _sensitivity() -> Section:
    tokens = tuple(float(512 * 2**n) for n in range(6))
    lines = Chart(
        title="The plan holds until responses are about 2k tokens",
        subtitle="Step time over the mean output length",
        x_label="output tokens",
        y_label="seconds",
        log_x=True,
        series=(
            Series(name="this plan", xs=tokens, ys=(4.1, 6.2, 9.9, 17.8, 34.0, 66.5), role="expected"),
            Series(name="at nameplate", xs=tokens, ys=(3.6, 5.3, 8.4, 15.0, 28.2, 55.0), role="nameplate"),
            Series(name="best split for each", xs=tokens, ys=(4.0, 6.0, 9.6, 16.1, 29.9, 57.2), role="other"),
        ),
        marks=(Mark(at=1536.0, label="now"), Mark(at=12.0, label="budget", axis="y")),
    )
    idle = Chart(
        title="Idle trainer",
        x_label="staleness cap in steps",
        y_label="idle",
        percent=True,
        series=(Series(name="trainer", xs=(0, 1, 2, 3, 4), ys=(0.47, 0.06, 0.024, 0.02, 0.02), role="trainer"),),
    )
    stale = Chart(
        title="Mean staleness",
        x_label="staleness cap in steps",
        y_label="steps",
        series=(Series(name="mean", xs=(0, 1, 2, 3, 4), ys=(0.0, 0.9, 1.4, 1.6, 1.7), role="rollout"),),
    )
    panels = Panels(title="Two steps of staleness buy nearly all there is", charts=(idle, stale), subtitle="Simulated")
    return Section(title="Sensitivity", pictures=(lines, panels))


def _assumptions() -> Section:
    figures = (
        _figure("instance_tokens_per_second", 4915.2, "measured", "rates-h100.yaml: measured 2026-11-02", (4500, 5300)),
        _figure("train_seconds", 7.9, "predicted", "calibrated on 12 runs", (7.2, 8.8)),
        _figure("sync_seconds", 0.75, "predicted", "NCCL broadcast over InfiniBand, 400 Gb/s", (0.5, 1.2)),
        _figure("gpu_hour_usd", 2.5, "given", "--gpu-hour"),
        _figure("headroom", 0.8, "default", "one for stragglers, drift and ramp"),
    )
    return Section(title="Assumptions", tables=(figures_table("What the plan rests on", figures),))


def _verifying() -> Section:
    return Section(
        title="Verify after the change",
        text=("Within an hour of the change, from the metrics of the run:",),
        listed=(
            "The trainer's idle fraction stays under 5 % over 50 steps.",
            "No sample is staler than 2 steps.",
            "Cost per step is at most $0.50; if it is not, go back to 44 + 20.",
        ),
        numbered=True,
    )
