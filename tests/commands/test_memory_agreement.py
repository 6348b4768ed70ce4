"""One loop, one verdict on its memory: `memory` and `predict step` say the same of the same scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
LOOP = """\
rlsize: {{kind: scenario, version: 1}}
model: {model}
cluster: {{gpu: h100-sxm, gpus: 24, gpus_per_node: 8}}
workload: {{prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {{mean: 2000, cv: 0.6}}}}
trainer: {{{trainer}, micro_batch_tokens: 8192}}
rollout: {{tensor_parallel: {rollout}}}
placement: {{mode: async, trainer_gpus: 8, rollout_gpus: 16}}
"""


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(
    ("model", "trainer", "rollout", "fits"),
    [
        ("qwen3-8b", "parallelism: {fsdp: 8}", 1, True),
        ("qwen3-32b", "parallelism: {fsdp: 8}", 2, False),
        ("qwen3-32b", "lora_rank: 16, parallelism: {fsdp: 8}", 2, True),
        ("qwen3-32b", "parallelism: {data: 2, tensor: 4}", 2, False),
        ("qwen3-8b", "parallelism: {data: 8, zero: 1}", 1, False),
        ("qwen3-30b-a3b", "parallelism: {fsdp: 8, expert: 8}", 2, False),
    ],
)
def test_a_trainer_fits_or_not_under_every_command(
    rlsize: Run, tmp_path: Path, model: str, trainer: str, rollout: int, fits: bool
) -> None:
    """The verdict, and the phase in which it dies."""
    path = tmp_path / "scenario.yaml"
    path.write_text(LOOP.format(model=model, trainer=trainer, rollout=rollout), encoding="utf-8")
    billed = rlsize("memory", str(path), "--json").results
    stepped = rlsize("predict", "step", str(path))
    said = " ".join(stepped.stdout.split())
    assert billed["trainer_fits"] is fits
    assert (stepped.code == 0) is fits
    if not fits:
        assert f"it dies at {billed['first_dying_phase']}" in said


def test_a_stated_layout_that_cannot_be_is_refused_in_the_same_words(rlsize: Run, tmp_path: Path) -> None:
    """Heads, experts and stages that do not divide."""
    for trainer, words in (
        ("parallelism: {fsdp: 8, expert: 2}", "the model has no experts"),
        ("parallelism: {data: 1, pipeline: 64}", "64 stages are more than the 36 layers"),
    ):
        path = tmp_path / "scenario.yaml"
        text = LOOP.format(model="qwen3-8b", trainer=trainer, rollout=1).replace("trainer_gpus: 8, ", "")
        path.write_text(text, encoding="utf-8")
        for command in (("memory",), ("predict", "step")):
            ran = rlsize(*command, str(path))
            assert ran.code == 2, command
            assert words in " ".join(ran.stderr.split()), command
