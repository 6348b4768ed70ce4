"""Training that is no RL loop (supervised, by preferences, by a teacher), and trainers that are known but not read."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.frameworks.told import normal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlsize.facts.launch import Program, Setting

_KINDS = r"sft|dpo|kto|orpo|cpo|simpo|kd|rm|prm|reward|pretrain|pt"
_PROGRAM = re.compile(
    rf"(?:\w+_)?(?:{_KINDS})(?:_train\w*|_tun\w+|_model\w*|_pipeline)?|finetun\w+|reward_model\w*", re.IGNORECASE
)
"""Last names of programs: `train_sft`, `fsdp_sft_trainer`, `dpo_tune_cache`, `finetune`."""
_CONFIG = re.compile(r"(SFT|DPO|KTO|ORPO|CPO|Reward|PRM|GKD)Config\.")
_DISTILLATION, _VALIDATION = "distillation", "validation"
_KEYS = (
    ("rlhf_type", "gkd", _DISTILLATION, True),
    ("distillation.num_prompts_per_step", ".*", _DISTILLATION, True),  # NeMo-RL
    ("trainer.val_only", "true", _VALIDATION, True),  # verl
    ("loss_type", "sft_loss", "sft", True),  # slime
    ("data.type", "sft", "sft", True),  # prime-rl
    ("train_dataset.type", "sft|rw", "", True),  # AReaL
    ("rlhf_type", "dpo|kto|orpo|cpo|simpo|rm", "", False),
    ("stage", "sft|pt|rm|dpo|kto", "", False),
    ("model.partial_pretrain", ".*", "sft", False),  # verl
    *((f"{kind}.max_num_*", ".*", kind, False) for kind in ("sft", "dpo", "rm")),  # NeMo-RL
    ("packing", "true", "sft", False),  # TRL
)
"""What tells other training: a key, values that it has, what it is (else the value), and whether keys that go with a
rollout, which trainers of several kinds take and leave unused, change nothing."""
_WRAPPED = 6  # words that a program's name is among: `uv run python -m ...`
_LAUNCHERS = frozenset({"swift", "megatron", "trl", "run"})
_ROLLOUT = re.compile(r"num_generations|rollout|vllm|grpo|ppo|max_completion_length")
_UNREAD = {
    "LLaMA-Factory": ({"finetuning_type"}, {"llamafactory-cli"}, "its own model generates (--engine transformers)"),
    "axolotl": ({"base_model", "rl"}, {"axolotl", "axolotl.cli.train"}, "its trainer is TRL's (--framework trl)"),
    "torchtune": ({"model._component_"}, {"tune"}, "its own model generates (--engine transformers)"),
    "verifiers": ({"env.id", "trainer.args.*"}, {"vf-rl", "vf-train", "vf-vllm"}, "vLLM generates beside the trainer"),
}
"""What tells a trainer that is not read, by its name: keys, all of them, or a program; and what to say in its place."""
_IMPORTED = re.compile(r"^\s*(?:import|from)\s+(axolotl|torchtune|verifiers)\b", re.MULTILINE)
_NOTHING = "nothing is generated here, so there is no RL loop to size"
_INSTEAD = "`rlsize memory --model NAME --algorithm sft` bills a trainer alone, and `rlsize predict train` times it"
_OTHERWISE = {
    _DISTILLATION: (
        "a teacher judges what is generated, not rewards, and no such loop is read",
        "describe it in a scenario (`rlsize init`), with the teacher as its reference model",
    ),
    _VALIDATION: ("nothing is trained here", "`rlsize predict rollout` times what engines generate"),
}


def without_rollout(program: Program) -> str:
    """What a program trains by in which nothing is generated, by its name; empty where it is none."""
    texts = [word.text for word in program.words]
    if any(_ROLLOUT.search(text) for text in texts):
        return ""
    return next((text for at, text in enumerate(texts) if _is_named(texts, at)), "")


def _is_named(texts: Sequence[str], at: int) -> bool:
    """Whether a word names a program, by its place or its ending, that trains without a rollout."""
    text, before = texts[at], texts[at - 1] if at else ""
    if text.endswith(".py"):
        return _PROGRAM.fullmatch(PurePosixPath(text).stem) is not None
    places = {"-m", "--module"} | _LAUNCHERS
    return PurePosixPath(before).name in places and _PROGRAM.fullmatch(text.rpartition(".")[2]) is not None


def check_rollout(settings: Iterable[Setting], name: str) -> None:
    """
    Refuse a configuration in which nothing is generated, or of a trainer that is not read.

    Args:
        settings: What it sets.
        name: The file.

    Raises:
        InputError: It is one.
    """
    said = {normal(setting.key): str(setting.value) for setting in settings}
    rolls = any(_ROLLOUT.search(key) for key in said)
    kind = next((match[1] for key in said if (match := _CONFIG.match(key)) and not rolls), "")
    for sign, values, what, surely in _KEYS if not kind else ():
        hits = [one for key, one in said.items() if fnmatchcase(key, sign) and re.fullmatch(values, one, re.IGNORECASE)]
        if hits and (surely or not rolls):
            kind = what or hits[0]
            break
    if kind:
        raise refused(kind, name)
    for trainer, (signs, _, _) in _UNREAD.items():
        if "rlhf_type" not in said and all(any(fnmatchcase(key, sign) for key in said) for sign in signs):
            raise unread(trainer, name)


def unread_by(programs: Iterable[Program], text: str) -> str:
    """The trainer that is not read and that a script starts, or Python imports; empty where there is none."""
    words = {PurePosixPath(word.text).name for program in programs for word in program.words[:_WRAPPED]}
    imported = _IMPORTED.search(text)
    found = next((trainer for trainer, (_, names, _) in _UNREAD.items() if names & words), "")
    return found or (imported[1] if imported else "")


def unread(trainer: str, name: str) -> InputError:
    """That a trainer is not read, and how its loop can be sized."""
    todo = f"describe the loop in a scenario (`rlsize init`): {_UNREAD[trainer][2]}"
    return InputError(Fault(f"is of {trainer}, which is not read", name, todo))


def refused(kind: str, name: str) -> InputError:
    """Why training of that kind is no loop, and what can be asked of it."""
    what, todo = _OTHERWISE.get(kind, (_NOTHING, _INSTEAD))
    return InputError(Fault(f"{kind}: {what}", name, todo))
