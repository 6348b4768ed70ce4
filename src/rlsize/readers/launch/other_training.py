"""Training in which nothing is generated (supervised, by preferences), and trainers that are known but not read."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlsize.facts.launch import Program, Setting

_KINDS = r"sft|dpo|kto|orpo|cpo|simpo|kd|rm|prm|reward|pretrain|pt"
_PROGRAM = re.compile(
    rf"(?:\w+_)?(?:{_KINDS})(?:_train\w*|_tun\w+|_model\w*)?|finetun\w+|reward_model\w*", re.IGNORECASE
)
"""Last names of programs: `train_sft`, `fsdp_sft_trainer`, `dpo_tune_cache`, `finetune`."""
_CONFIG = re.compile(r"(SFT|DPO|KTO|ORPO|CPO|Reward|PRM|GKD)Config\.")
_KEYS = {"rlhf_type": "dpo|kto|orpo|cpo|simpo|rm", "stage": "sft|pt|rm|dpo|kto"}
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
_INSTEAD = "`rlsize memory --model NAME --algorithm sft` bills a trainer alone, and `rlsize predict train` times it"


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
    said = {setting.key: str(setting.value) for setting in settings}
    code = next((match[1] for key in said if (match := _CONFIG.match(key))), "")
    kind = code or next((said[key] for key, kinds in _KEYS.items() if re.fullmatch(kinds, said.get(key, ""))), "")
    if kind and not any(_ROLLOUT.search(key) for key in said):
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
    return InputError(Fault(f"{kind}: nothing is generated here, so there is no RL loop to size", name, _INSTEAD))
