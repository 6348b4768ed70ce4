"""The questions of `rlsize init`: key, flag, words, the usual answer, and how an answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlsize.commands import init_reading as reading
from rlsize.commands.init_reading import Desk, Read, optional
from rlsize.facts.budget import Budget
from rlsize.quantities.scenario_keys import fields_of
from rlsize.writers.scalars import number, scalar
from rlsize.writers.scenario_file import STARTER

NONE = "none"
PLAN = "plan"
COLOCATED = "colocated"
CAPPED = "async"
RATE = "rates.instance_tokens_per_second"
LIMITS = tuple(fields_of(Budget))

_LONGEST_OVER_MEAN = 4.0  # how far beyond the mean the usual cut-off stands at least: lengths have long tails
_LONGEST = 8000.0  # the shortest usual cut-off; longer ones double it [token]

Answers = Mapping[str, Any]
Usual = Callable[[Answers, Desk], str]
Applies = Callable[[Answers, Desk], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """
    One question.

    Args:
        key: What it answers, as a dotted key of the scenario.
        flag: The flag that answers it too.
        part: The heading that it stands under.
        ask: What is asked, in a few words.
        more: What `?` says.
        read: How the answer is read.
        usual: The answer that is taken where none is given.
        alone: The same without a terminal, where nobody sees the usual one and agrees.
        applies: Whether it is to be asked at all.
        also: A second flag that answers it.
        profiles: Kind of the profiles that `?` lists.
    """

    key: str
    flag: str
    part: str
    ask: str
    more: str
    read: Read
    usual: Usual
    alone: str | None = None
    applies: Applies = lambda _, __: True
    also: str = ""
    profiles: str = ""


def _starter(key: str) -> Usual:
    shown = scalar(STARTER[key])
    return lambda _, __: shown


def _always(text: str) -> Usual:
    return lambda _, __: text


def _capped(answers: Answers, _: Desk) -> bool:
    return answers.get("placement.mode") == CAPPED


def _split(answers: Answers, _: Desk) -> bool:
    return answers.get("placement.mode") not in {None, COLOCATED}


def _usual_node(_: Answers, desk: Desk) -> str:
    return f"{desk.gpu.specification.gpus_per_node.value:g}" if desk.gpu is not None else NONE


def _node_unknown(_: Answers, desk: Desk) -> bool:
    return desk.gpu is not None and not desk.gpu.specification.gpus_per_node.verified


def _usual_longest(answers: Answers, desk: Desk) -> str:
    """A cut-off well beyond the mean, within the model's context."""
    mean = float(answers.get("workload.response_tokens.mean") or STARTER["workload.response_tokens.mean"])
    longest = _LONGEST
    while longest < _LONGEST_OVER_MEAN * mean:
        longest *= 2.0
    if desk.model is not None:
        room = float(desk.model.architecture.max_context) - float(answers.get("workload.prompt_tokens") or 0.0)
        longest = min(longest, max(room, mean))
    return number(longest, "token")


def _today(_: Answers, __: Desk) -> str:
    from datetime import datetime

    return datetime.now().astimezone().date().isoformat()


def _priced(answers: Answers, _: Desk) -> bool:
    return answers.get("prices.gpu_hour") is not None


def train_unmeasured(_: Answers, desk: Desk) -> bool:
    """Whether no rates file says how quick the trainer is."""
    rates = desk.rates
    return rates is None or (rates.train_seconds is None and rates.consumption_tokens_per_second is None)


_GPUS, _STEP, _PLACE, _RATES, MONEY = (
    "Model and GPUs",
    "One optimizer step",
    "Placement",
    "What is measured",
    "Price and limits",
)
_MODES = """\
colocated: both sides take turns on the same GPUs. disaggregated (or sync): each has its own, and they take turns. \
one-step-off (or overlapped): the next rollout runs while one trains. async: both never stop, and staleness is capped. \
partial: as sync, but long samples go on in the next step. plan: `rlsize plan` compares them and chooses."""

QUESTIONS = (
    Question(
        key="model", flag="--model", part=_GPUS, ask="Model: a profile, or the path of a config.json",
        more="What is trained. A config.json is the one of its Hugging Face repository.",
        read=reading.model, usual=_starter("model"), profiles="model",
    ),
    Question(
        key="cluster.gpu", flag="--gpu", part=_GPUS, ask="GPU: a profile",
        more="Its memory, rates and links decide what fits and how quick it is.",
        read=reading.gpu, usual=_starter("cluster.gpu"), profiles="gpu",
    ),
    Question(
        key="cluster.gpus", flag="--gpus", part=_GPUS, ask="GPUs, trainer and rollout fleet together",
        more="All that there are; how they are split comes later.",
        read=reading.number, usual=_starter("cluster.gpus"),
    ),
    Question(
        key="cluster.gpus_per_node", flag="--gpus-per-node", part=_GPUS,
        ask="GPUs in a node (the profile only assumes it)",
        more="GPUs of one node talk over the fast link, nodes over the network.",
        read=optional(reading.number, NONE), usual=_usual_node, alone=NONE, applies=_node_unknown,
    ),
    Question(
        key="algorithm.name", flag="--algorithm", part=_STEP, ask="Algorithm: grpo, ppo, rloo, dapo, ...",
        more="One of grpo, ppo, rloo, reinforce++, dapo, sft. It says which models there are: ppo adds a critic.",
        read=reading.word, usual=_starter("algorithm.name"),
    ),
    Question(
        key="workload.prompts_per_step", flag="--prompts", part=_STEP, ask="Prompts per optimizer step",
        more="Times the samples of a prompt, it is the batch of an optimizer step.",
        read=reading.number, usual=_starter("workload.prompts_per_step"),
    ),
    Question(
        key="workload.group_size", flag="--group", part=_STEP, ask="Samples of one prompt (group size)",
        more="Group methods such as grpo compare the samples of a prompt; 1 where there is nothing to compare.",
        read=reading.number, usual=_starter("workload.group_size"),
    ),
    Question(
        key="workload.prompt_tokens", flag="--prompt-tokens", part=_STEP, ask="Prompt tokens, mean",
        more="Prompts are computed once for each group, and their KV cache stays while samples run.",
        read=reading.number, usual=_starter("workload.prompt_tokens"),
    ),
    Question(
        key="workload.response_tokens.mean", flag="--response-tokens", part=_STEP, ask="Response tokens, mean",
        more="What is generated and trained; nothing moves the answer more.",
        read=reading.number, usual=_starter("workload.response_tokens.mean"),
    ),
    Question(
        key="workload.response_tokens.max", flag="--max-response-tokens", part=_STEP,
        ask="Longest response, where generation is cut off",
        more="A step waits for its longest samples, unless it runs async.",
        read=reading.number, usual=_usual_longest,
    ),
    Question(
        key="placement.mode", flag="--mode", part=_PLACE,
        ask="Mode: colocated, disaggregated, async, or plan to choose later", more=_MODES,
        read=optional(reading.word, PLAN), usual=_always(PLAN),
    ),
    Question(
        key="placement.max_staleness", flag="--max-staleness", part=_PLACE, ask="Staleness cap, in optimizer steps",
        more="How many optimizer steps the trainer may be ahead of the weights that began a sample.",
        read=optional(reading.number, NONE), usual=_starter("placement.max_staleness"), applies=_capped,
    ),
    Question(
        key="placement.trainer_gpus", flag="--trainer-gpus", part=_PLACE, ask="Trainer GPUs, or plan to choose later",
        more="The rest generate. plan: `rlsize plan` chooses.",
        read=optional(reading.number, PLAN, NONE), usual=_always(PLAN), applies=_split,
    ),
    Question(
        key="placement.rollout_gpus", flag="--rollout-gpus", part=_PLACE, ask="Rollout GPUs, or plan to choose later",
        more="GPUs of the rollout fleet; all that the trainer leaves when not given.",
        read=optional(reading.number, PLAN, NONE), usual=_always(PLAN), applies=lambda _, __: False,
    ),
    Question(
        key=RATE, flag="--per-instance", also="--rates", part=_RATES,
        ask="Response tok/s of an instance, or a rates file",
        more="A number such as 4000 or 4000 ± 200, or what `rlsize observe` and `rlsize measure` save. "
        "none: it is predicted.",
        read=optional(reading.rate, NONE), usual=_always(NONE),
    ),
    Question(
        key="rates.train_seconds", flag="--train-seconds", part=_RATES, ask="Busy trainer seconds of a step",
        more="Log-prob passes and update, without waiting and weight sync: 20, or 20 ± 2. none: it is predicted.",
        read=optional(reading.number, NONE), usual=_always(NONE), applies=train_unmeasured,
    ),
    Question(
        key="prices.gpu_hour", flag="--gpu-hour", part=MONEY, ask="Dollars per GPU-hour",
        more="No price is ever assumed: without one no answer has dollars. `rlsize profiles list price` has some.",
        read=optional(reading.number, NONE), usual=_always(NONE),
    ),
    Question(
        key="prices.as_of", flag="--as-of", part=MONEY, ask="Day of that price",
        more="Prices move; the file says when this one held.",
        read=optional(reading.day, NONE), usual=_today, alone=NONE, applies=_priced,
    ),
    Question(
        key="prices.region", flag="--region", part=MONEY, ask="Region of that price",
        more="Where it holds, in the words of whoever asks it.",
        read=optional(reading.words, NONE), usual=_always(NONE), applies=_priced,
    ),
)  # fmt: skip
