"""The question behind `rlsize predict train`, from flags, scenario and profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.commands import asking, flags
from rlsize.commands.tenants import TenantFlags, tenants
from rlsize.commands.trainer_layout import trainer_layout
from rlsize.equations import matching, train_step
from rlsize.errors import InputError
from rlsize.estimates.train_prediction_question import DTYPES, Sharding, TrainQuestion, objections
from rlsize.estimates.working import apply
from rlsize.facts.algorithm import BYTES_PER_GRADIENT, OPTIMIZERS
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure, absent
from rlsize.shell.models import model_profile

if TYPE_CHECKING:
    from rlsize.commands.predict_train_flags import LayoutFlags, Models, Trainer, Work
    from rlsize.estimates.sharding import Layout
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.shell.inputs import Inputs

MICRO_BATCH = 16384.0  # tokens
RESPONSE_CV = 1.0
_SHARDING: dict[int, Sharding] = {0: "none", 1: "optimizer", 2: "gradients", 3: "full"}
_SCALINGS = ["tensor", "row"]
_RECOMPUTED = ["none", "selective", "full"]
_CV = Quantity("1", least=0.0, most=20.0)
_NAMED = {"old": "old_logprob", "reference": "reference", "proximal": "proximal"}


def train_question(
    inputs: Inputs,
    named: tuple[str | None, str | None],
    work: Work,
    layout: LayoutFlags,
    trainer: Trainer,
    models: Models,
) -> TrainQuestion:
    """
    What is asked.

    Args:
        inputs: Flags, scenario and profiles.
        named: What `--model` and `--gpu` say.
        work: The tokens of a step.
        layout: How the trainer is spread.
        trainer: How it works.
        models: Which models there are beside the policy.

    Raises:
        InputError: All faults, a question without an answer among them.
    """
    model, gpu = _model(inputs, named[0]), _gpu(inputs, named[1])
    tokens = _tokens(inputs, work)
    spread = _layout(inputs, layout, model)
    how = _how(inputs, trainer)
    passes, extra, rl = _passes(inputs, models, model)
    inputs.settle()
    if model is None or gpu is None or spread is None:  # each has left a fault
        raise InputError(*inputs.faults)
    question = TrainQuestion(
        model=model,
        gpu=gpu,
        gpus=spread.gpus,
        tensor=int(spread.tensor_parallel.number),
        pipeline=int(spread.pipeline_parallel.number),
        context=int(spread.context_parallel.number),
        expert=int(spread.expert_parallel.number),
        shards=_shards(spread),
        sharding=_SHARDING[int(spread.zero_stage.number)],
        **tokens,
        **how,
        passes=passes,
        pass_models=extra,
        workload="rl" if rl else "pretraining",
    )
    for objection in objections(question, spread.gpus.number):
        inputs.fault(objection, _whose(objection), "change one of them")
    inputs.settle()
    return question


def response_batch(inputs: Inputs) -> Figure | None:
    """Response tokens of a step, from what was asked before."""
    sequences, response = inputs.used.get("samples_per_step"), inputs.used.get("response_tokens")
    if sequences is None or response is None:
        return None
    return apply("batch_tokens", matching.tokens_per_step, prompts=sequences, group_size=1, response_tokens=response)


def _whose(objection: str) -> str:
    return "--dtype" if "fp8" in objection or "bf16" in objection else "--trainer-gpus"


def _model(inputs: Inputs, name: str | None) -> Model | None:
    found = model_profile(inputs, name)
    if found is None and not inputs.faults:
        inputs.fault("the model is missing", "--model", "name a profile or a config.json: its layers decide the time")
    return found


def _gpu(inputs: Inputs, name: str | None) -> Gpu | None:
    found = asking.gpu(inputs, name)
    if found is None and not inputs.faults:
        inputs.fault("the GPU is missing", "--gpu", "name a profile, such as h100-sxm")
    return found


def _tokens(inputs: Inputs, said: Work) -> dict[str, Any]:
    """Sequences of the step and their lengths."""
    response = inputs.number(
        "response_tokens",
        "--response-tokens",
        said.response_tokens,
        flags.TOKENS,
        scenario="workload.response_tokens.mean",
    )
    prompt = inputs.number(
        "prompt_tokens",
        "--prompt-tokens",
        said.prompt_tokens,
        flags.TOKENS,
        scenario="workload.prompt_tokens",
        default=0.0,
        why="not said: prompts are left out",
    )
    spread = inputs.number(
        "response_cv",
        "--response-cv",
        said.response_cv,
        _CV,
        scenario="workload.response_tokens.cv",
        default=RESPONSE_CV,
        why="assumed; measure yours",
    )
    sequences = _sequences(inputs, said)
    inputs.need(response, "give --response-tokens")
    if prompt.provenance == "default":
        inputs.notes.append("Prompts are left out, though the trainer works on them too (--prompt-tokens).")
    inputs.need(sequences, "give --samples, or --prompts and --group")
    lengths = {"prompt_tokens": prompt, "response_tokens": response}
    return {
        "sequences": sequences,
        "tokens": apply("sequence_tokens", train_step.trained_sequence_tokens, **lengths),
        "tokens_cv": apply("sequence_cv", train_step.trained_sequence_cv, response_cv=spread, **lengths),
        "updates": inputs.number(
            "updates", "--updates", said.updates, flags.COUNT, default=1, why="each token is trained on once"
        ),
        "optimizer_steps": inputs.number(
            "mini_batches", "--mini-batches", said.mini_batches, flags.COUNT, default=1, why="one update of the weights"
        ),
    }


def _sequences(inputs: Inputs, said: Work) -> Figure:
    stated = inputs.number("samples_per_step", "--samples", said.samples, flags.POSITIVE)
    if stated.known:
        return stated
    prompts = inputs.number(
        "prompts_per_step", "--prompts", said.prompts, flags.POSITIVE, scenario="workload.prompts_per_step"
    )
    group = inputs.number("group_size", "--group", said.group, flags.POSITIVE, scenario="workload.group_size")
    product = apply("samples_per_step", matching.samples_per_step, prompts=prompts, group_size=group)
    return inputs.keep(product) if product.known else absent("samples_per_step", "--samples")


def _layout(inputs: Inputs, said: LayoutFlags, model: Model | None) -> Layout | None:
    from rlsize.estimates.memory_shape import memory_shape
    from rlsize.estimates.model_size import model_size

    shape = memory_shape(model, model_size(model).params) if model else None
    found = trainer_layout(inputs, said, shape)
    if found is None and not inputs.faults:
        inputs.fault("the trainer's GPUs are missing", "--trainer-gpus", "give their number, or how they are spread")
    return found


def _shards(spread: Layout) -> int | None:
    """Ranks that share the state, context-parallel ones included; None where all do."""
    if spread.shards.number == spread.data_parallel.number:
        return None
    return int(spread.shards.number) * int(spread.context_parallel.number)


def _how(inputs: Inputs, said: Trainer) -> dict[str, Any]:
    """How the trainer works: micro-batches, recomputation, number type, optimizer."""
    name = inputs.word(
        "optimizer", "--optimizer", said.optimizer, OPTIMIZERS, scenario="trainer.optimizer", default="adamw"
    )
    width = inputs.word(
        "gradients", "--gradients", said.gradients, BYTES_PER_GRADIENT, scenario="trainer.gradients", default="bf16"
    )
    recompute = inputs.word(
        "recompute", "--recompute", said.recompute, _RECOMPUTED, scenario="trainer.recompute", default="full"
    )
    dtype = inputs.word("dtype", "--dtype", said.dtype, list(DTYPES), default="bf16")
    scaling = inputs.word("fp8_scaling", "--fp8-scaling", said.fp8_scaling, _SCALINGS, default="tensor")
    micro = inputs.number(
        "micro_batch_tokens",
        "--micro-batch-tokens",
        said.micro_batch_tokens,
        flags.TOKENS,
        scenario="trainer.micro_batch_tokens",
        default=MICRO_BATCH,
        why="assumed: samples packed to 16k tokens",
    )
    stages = inputs.number("virtual_stages", "--virtual-stages", said.virtual_stages, flags.COUNT, default=1)
    rank = inputs.number("lora_rank", "--lora-rank", None, flags.COUNT, scenario="trainer.lora_rank")
    if rank.known:
        inputs.warnings.append("LoRA is predicted as full training, which takes longer")
    optimizer = OPTIMIZERS[name or "adamw"]
    both = (optimizer.bytes_per_master, optimizer.bytes_per_optimizer_state)
    return {
        "micro_batch_tokens": micro,
        "recompute": recompute or "full",
        "dtype": dtype or "bf16",
        "row_scaling": scaling == "row",
        "virtual_stages": int(stages.number) if stages.known else 1,
        "state_bytes": sum(both),
        "gradient_bytes": BYTES_PER_GRADIENT[width or "bf16"],
        "offload": said.offload,
        "lora_rank": int(rank.number) if rank.known else None,
        "fused": said.compiled,
        "overlapped": said.overlapped,
        "native_attention": said.native_attention,
    }


def _passes(inputs: Inputs, said: Models, policy: Model | None) -> tuple[tuple[str, ...], dict[str, Model], bool]:
    """The extra passes, the models of those that are not the policy's size, and whether this is RL."""
    kept = tenants(
        inputs,
        TenantFlags(
            algorithm=said.algorithm, critic=said.critic, reference=said.reference, reward_model=said.reward_model
        ),
    )
    if not kept.algorithm.rollout:
        return (), {}, False
    listed = inputs.said("trainer.logprob_passes")
    wanted = {_NAMED[name] for name in listed} if listed is not None else {"old_logprob"}
    if said.old_logprob is not None:
        wanted = (wanted | {"old_logprob"}) if said.old_logprob else wanted - {"old_logprob"}
    habit = kept.algorithm.reference if listed is None else "reference" in wanted
    if habit if kept.reference is None else kept.reference:
        wanted.add("reference")
    else:
        wanted.discard("reference")
    wanted |= {"critic"} if kept.critic else set()
    wanted |= {"reward"} if kept.reward else set()
    order = ("old_logprob", "reference", "proximal", "reward", "critic")
    own = _reward_model(inputs, said, wanted)
    if kept.reference and policy is not None and inputs.said("trainer.lora_rank") is not None:
        own["reference"] = policy  # asked for by name: a copy, where adapters that are switched off would do
    return tuple(name for name in order if name in wanted), own, True


def _reward_model(inputs: Inputs, said: Models, wanted: set[str]) -> dict[str, Model]:
    """The reward model's profile where the scenario names one."""
    name = inputs.said("algorithm.reward_model")
    if "reward" not in wanted or said.reward_model is not None or not isinstance(name, str):
        return {}
    try:
        return {"reward": inputs.catalogue.get("model", name)}
    except InputError:  # noted already, or a word for the policy's size
        return {}
