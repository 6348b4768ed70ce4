"""
Known set-ups, what practice runs there, and what `rlsize plan` answers without a flag: docs/expert-plans.md.

    python -m benchmarks.experts                               # prints it
    python -m benchmarks.experts --write docs/expert-plans.md  # puts it between the marks of that page
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.loop.search import searched
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from rlsize.planner.plan import Planned

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


@dataclass(frozen=True)
class SetUp:
    """
    A loop that is known.

    Args:
        said: What is said of it: model, GPU, GPUs, prompts, group, prompt tokens, response tokens, and more.
        practice: What runs it: mode, split, engine and trainer.
        source: Who says so.
        why: Why the answer differs.
        measured: The published step; None where there is none. [s]
    """

    said: dict[str, str]
    practice: str
    source: str
    why: str
    measured: float | None = None

    def planned(self) -> Planned:
        """The plan of it."""
        return searched(Inputs(texts=dict(self.said)), (None, "")).planned


def _of(
    model: str, gpu: str, gpus: int, batch: tuple[int, int], lengths: tuple[int, int], **more: str
) -> dict[str, str]:
    names = ("prompts_per_step", "group_size", "prompt_tokens", "response_tokens")
    numbers = {key: str(number) for key, number in zip(names, (*batch, *lengths), strict=True)}
    return {"model": model, "gpu": gpu, "gpus": str(gpus), **numbers, **more}


_VERL = "verl@1dda039b, docs/perf/device_tuning.rst"
_NEMO = "NeMo-RL@cff17f83b, docs/about/performance-summary.md"
_VERL_BATCH, _VERL_LENGTHS = (1024, 5), (512, 512)
H100 = "h100-sxm"
SET_UPS = (
    SetUp(
        _of("qwen2.5-1.5b", "rtx-4090", 1, (64, 8), (512, 1000)), "colocated, all in turn", "no table is known",
        "the same; all parameters are trained, so their states are offloaded",
    ),
    SetUp(_of("qwen2.5-3b", H100, 1, _VERL_BATCH, _VERL_LENGTHS, lora_rank="32"), "colocated", _VERL, "the same"),
    SetUp(
        _of("qwen2.5-14b", H100, 2, _VERL_BATCH, _VERL_LENGTHS, lora_rank="32"), "colocated, FSDP", _VERL, "the same",
    ),
    SetUp(
        _of("qwen2-7b", "h800-sxm", 2, _VERL_BATCH, _VERL_LENGTHS), "colocated, FSDP with offload", _VERL,
        "two stages move less than two shards: no framework is named, else verl's trainers decide; it offloads too",
    ),
    SetUp(
        _of("qwen2-72b", "h800-sxm", 32, _VERL_BATCH, _VERL_LENGTHS), "colocated, FSDP with offload", _VERL,
        "as before; the published run was to fit, not to be quick",
    ),
    SetUp(
        _of("llama3.1-8b", H100, 16, (64, 32), (200, 1129)), "async 8 + 8, tp1; pp2", _NEMO,
        "the same split; larger instances, of which each has a batch left when few samples are in flight", 74.6,
    ),
    SetUp(
        _of("qwen3-30b-a3b", H100, 32, (64, 32), (200, 3158)), "async 16 + 16, tp4; tp2 ep8", _NEMO,
        "the same split; attention in ranks of data keeps one copy of the cache",
        244.0,
    ),
    SetUp(
        _of("qwen3-32b", H100, 64, (64, 32), (200, 3207)), "async 32 + 32, tp4; tp4 pp4", _NEMO,
        "the same split; the rest lies within the band", 215.0,
    ),
    SetUp(
        _of("qwen3-235b-a22b", H100, 256, (16, 32), (200, 5691)), "async 128 + 128, tp8; tp4 ep16 pp8", _NEMO,
        "the published split and layout, 94 layers in 8 stages, is predicted at 440 s: no better within the noise; "
        "241 s lies below its band", 241.0,
    ),
    SetUp(
        _of("deepseek-v3", H100, 256, (32, 16), (200, 745)), "colocated, tp32; ep16 pp16", _NEMO,
        "a step of staleness was allowed, so that sides overlap; colocated as published it is predicted at 153 s",
        154.0,
    ),
    SetUp(
        _of("deepseek-v3", H100, 512, (32, 16), (200, 744)), "async 256 + 256, tp32; ep16 pp16", _NEMO,
        "tensors stay within a node and stages lie across, which reads as many weights and moves less", 77.9,
    ),
    SetUp(
        _of("kimi-k2", H100, 1024, (512, 16), (512, 8000)), "colocated, wide expert parallelism", "recalled, no table",
        "a step of staleness was allowed; experts over 64 GPUs, with ranks of data for attention, are the same",
    ),
)  # fmt: skip


def table() -> str:
    """What practice runs, and what is answered, as a table in Markdown."""
    lines = ["| Set-up | Practice | Source | Answer | Step | Why it differs |", "| --- | --- | --- | --- | --- | --- |"]
    for one in SET_UPS:
        said, chosen = one.said, one.planned().chosen
        name = f"{said['model']} on {said['gpus']} {said['gpu']}{', LoRA' if 'lora_rank' in said else ''}"
        answer = step = "none"
        if chosen is not None:
            place = chosen.best.place
            saves = " with offload" if place.trainer.savings[1] else ""
            answer = f"{place.words}, {place.fleet.name.split(' ', 1)[1]}; {place.trainer.name}{saves}"
            step = f"{chosen.best.family.step_seconds:.3g} s"
        practice = one.practice + ("" if one.measured is None else f"; {one.measured:g} s measured")
        lines.append(f"| {name} | {practice} | {one.source} | {answer} | {step} | {one.why} |")
    return "\n".join(lines)


if __name__ == "__main__":
    text = table()
    if sys.argv[1:2] == ["--write"]:
        page = Path(sys.argv[2])
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    else:
        print(text)
