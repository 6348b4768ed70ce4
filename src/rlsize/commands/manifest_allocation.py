"""The allocation behind `manifest` and `snippet`: from flags, a plan, a scenario with placement, or an observation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.commands import flags
from rlsize.commands.loop_words import LOOPS
from rlsize.commands.manifest_fleet import Fleet, fleet_of
from rlsize.commands.manifest_saved import saved_figures
from rlsize.errors import InputError
from rlsize.facts.allocation import Allocation, Degrees
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure, absent
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from rlsize.readers.yaml_documents import Document

WHOLE = Quantity("count", whole=True, most=1e6)
_MODES = {**LOOPS, "synchronous": "synchronous", "hybrid": "hybrid"}
_ENGINES = ("vllm", "sglang", "tensorrt-llm")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationFlags:
    """What flags say of an allocation; None where they say nothing."""

    mode: str | None = None
    instances: str | None = None
    gpus_per_instance: str | None = None
    rollout_gpus: str | None = None
    trainer_gpus: str | None = None
    gpus_per_node: str | None = None
    engine: str | None = None
    tensor: str | None = None
    max_staleness: str | None = None
    sync_every: str | None = None
    prompts: str | None = None
    group: str | None = None
    mini_batches: str | None = None
    concurrency: str | None = None


class Said:
    """
    What flags and one file say.

    Args:
        path: A plan, a scenario or an observation; None for flags only.
        folders: Folders of the user's own profiles.

    Raises:
        InputError: What is wrong with the file.
    """

    def __init__(self, path: str | None, folders: list[str] | None = None) -> None:
        self.saved: dict[str, Figure] = {}
        if path is None:
            self.inputs, self.kind = Inputs(None, folders), ""
            return
        document, self.kind = _opened(path)
        self.inputs = Inputs(path if self.kind == "scenario" else None, folders)
        if self.kind != "scenario":
            self.saved = saved_figures(document, self.kind)

    def number(self, key: str, flag: str, text: str | None, kind: Quantity, scenario: str = "") -> Figure:
        """A number: from the flag, else from the file."""
        if text is None and key in self.saved:
            return self._saved(key, kind)
        return self.inputs.number(key, flag, text, kind, scenario=scenario)

    def written(self, key: str, scenario: str = "") -> Any:
        """A word of the file; None where it does not say."""
        figure = self.saved.get(key)
        return figure.value if figure is not None else self.inputs.said(scenario)

    def _saved(self, key: str, kind: Quantity) -> Figure:
        figure = self.saved[key]
        try:
            value = kind.check(figure.number, str(figure.value))
        except (TypeError, ValueError) as error:
            self.inputs.fault(str(error), figure.source, "save it again with this rlsize")
            return absent(key, figure.source)
        return self.inputs.keep(replace(figure, value=int(value) if kind.whole else value))


def _opened(path: str) -> tuple[Document, str]:
    """
    A file and its kind.

    Raises:
        InputError: It holds no allocation.
    """
    from rlsize.errors import Fault
    from rlsize.readers.yaml_documents import read_document

    document = read_document(path)
    header = document.data.get("rlsize") if isinstance(document.data, dict) else None
    kind = header.get("kind") if isinstance(header, dict) else None
    if kind not in {"plan", "scenario", "observation"}:
        what = f"is a {str(kind)[:40]} file" if kind else "does not say which kind of file it is"
        todo = "name a saved plan (`rlsize plan ... --save FILE`), a scenario or an observation"
        raise InputError(Fault(f"{what}, and holds no allocation", path, todo))
    return document, kind


def allocation_of(said: Said, asked: AllocationFlags, source: str) -> Allocation:
    """
    The allocation; faults are noted in `said.inputs`.

    Args:
        said: The file.
        asked: The flags; they go before the file.
        source: What to call it.
    """
    inputs = said.inputs
    trainer = said.number("trainer_gpus", "--trainer-gpus", asked.trainer_gpus, WHOLE, "placement.trainer_gpus")
    mode = _mode(said, asked, trainer)
    rollout = _as_rated(said, asked, _rollout_degrees(said, asked))
    fleet = fleet_of(said, asked, mode, rollout, trainer)
    words = inputs.said("algorithm.reference") if inputs.file else said.written("reference")
    return Allocation(
        source=source,
        mode=mode,
        instances=fleet.instances,
        gpus_per_instance=fleet.gpus_per_instance,
        rollout_gpus=fleet.rollout_gpus,
        trainer_gpus=fleet.trainer_gpus,
        gpus_per_node=_node(said, asked),
        engine=_engine(said, asked),
        rollout=_settled(rollout, fleet),
        trainer=_trainer_degrees(said),
        max_staleness=_value(
            said.number(
                "max_staleness", "--max-staleness", asked.max_staleness, flags.STALENESS, "placement.max_staleness"
            )
        ),
        sync_every=int(
            _value(said.number("sync_every", "--sync-every", asked.sync_every, WHOLE, "weight_sync.every")) or 1
        ),
        carried=(asked.mode or inputs.said("placement.mode")) == "partial",
        in_flight=mode in {"async", "hybrid"} and inputs.said("weight_sync.way") in {None, "in-flight"},
        prompts_per_step=_value(
            said.number("prompts_per_step", "--prompts", asked.prompts, flags.POSITIVE, "workload.prompts_per_step")
        ),
        group_size=_value(said.number("group_size", "--group", asked.group, flags.POSITIVE, "workload.group_size")),
        mini_batches=int(_value(said.number("mini_batches", "--mini-batches", asked.mini_batches, WHOLE)) or 1),
        concurrency=_value(
            said.number("concurrency", "--concurrency", asked.concurrency, flags.POSITIVE, "rollout.concurrency")
        ),
        memory_fraction=_value(
            said.number("memory_fraction", "--memory-fraction", None, flags.FRACTION, "rollout.memory_fraction")
        ),
        reference=words if isinstance(words, bool) else None,
        mixture=_mixture(said),
    )


def _value(figure: Figure) -> float | None:
    return figure.number if figure.known else None


def _mode(said: Said, asked: AllocationFlags, trainer: Figure) -> str:
    """The loop; where nobody says, two pools are asynchronous, as in the other commands."""
    if asked.mode is None and "mode" in said.saved:
        word = str(said.saved["mode"].value)
        if word in _MODES:
            return _MODES[word]
        said.inputs.fault(f"{word[:40]!r} is no mode", said.saved["mode"].source, "save it again with this rlsize")
        return ""
    word = said.inputs.word("mode", "--mode", asked.mode, _MODES, scenario="placement.mode")
    if word:
        return _MODES[word]
    if said.kind == "scenario" and (trainer.known or said.inputs.said("placement.rollout_gpus") is not None):
        said.inputs.notes.append("Nobody said how the loop is laid out in time: async (--mode).")
        return "async"
    return ""


def _rollout_degrees(said: Said, asked: AllocationFlags) -> Degrees:
    """How an instance is spread; what the file says of it does not hold for another size by flag."""
    tensor = said.number(
        "rollout_tensor_parallel", "--rollout-tensor-parallel", asked.tensor, WHOLE, "rollout.tensor_parallel"
    )
    if asked.gpus_per_instance is not None and asked.tensor is None:
        _forget_layout(said)
        return Degrees()
    if asked.tensor is not None:
        return Degrees(tensor=_whole(tensor))
    others = {
        name: _whole(
            said.number(
                f"rollout_{name}_parallel",
                "",
                None,
                WHOLE,
                "rollout.pipeline_parallel" if name == "pipeline" else "",
            )
        )
        for name in ("pipeline", "data", "expert")
    }
    return Degrees(tensor=_whole(tensor), **others)


def _as_rated(said: Said, asked: AllocationFlags, found: Degrees) -> Degrees:
    """A plan from a given rate has the size of the instance that reaches it; a layout of another size is not its."""
    size = said.saved.get("gpus_per_instance")
    if said.kind != "plan" or size is None or isinstance(size.value, str) or found.tensor is None:
        return found
    if asked.tensor is not None or asked.gpus_per_instance is not None:
        return found
    spread = found.tensor * (found.pipeline or 1) * (found.data or 1)
    if size.value == spread:
        return found
    _forget_layout(said)
    said.inputs.notes.append(
        f"The plan's layout over {spread} GPUs is not that of its instances of {size.value:g}: it is left aside."
    )
    return Degrees()


def _forget_layout(said: Said) -> None:
    for key in [key for key in said.inputs.used if key.startswith("rollout_") and key.endswith("_parallel")]:
        del said.inputs.used[key]


def _settled(rollout: Degrees, fleet: Fleet) -> Degrees:
    """An instance of one GPU is not spread, whoever says so."""
    return Degrees(tensor=1) if rollout.tensor is None and fleet.gpus_per_instance == 1 else rollout


def _trainer_degrees(said: Said) -> Degrees:
    found = {
        name: _whole(said.number(f"{name}_parallel", "", None, WHOLE, f"trainer.parallelism.{name}"))
        for name in ("tensor", "pipeline", "context", "expert")
    }
    return Degrees(**found)


def _whole(figure: Figure) -> int | None:
    return int(figure.number) if figure.known else None


def _engine(said: Said, asked: AllocationFlags) -> str:
    if asked.engine is None and "engine" in said.saved:
        return str(said.saved["engine"].value).lower()
    return said.inputs.word("engine", "--engine", asked.engine, list(_ENGINES), scenario="rollout.engine")


def _node(said: Said, asked: AllocationFlags) -> int | None:
    """GPUs of a node: said, else those of the GPU's usual node."""
    found = said.number("gpus_per_node", "--gpus-per-node", asked.gpus_per_node, WHOLE, "cluster.gpus_per_node")
    if found.known or asked.gpus_per_node is not None:
        return _whole(found)
    gpu = said.written("rollout_gpu") or said.written("gpu", "cluster.gpu")
    cluster = said.inputs.said("cluster.profile")
    catalogue = said.inputs.catalogue
    try:
        if cluster:
            profile: Any = catalogue.get("cluster", str(cluster))
        elif gpu:
            profile = catalogue.get("gpu", str(gpu)).specification
        else:
            return None
    except InputError as error:
        said.inputs.blame(error, "gpu")
        return None
    value = int(profile.gpus_per_node.value)
    source = f"profile {cluster or gpu}"
    return _whole(said.inputs.keep(Figure(key="gpus_per_node", value=value, provenance="default", source=source)))


def _mixture(said: Said) -> bool | None:
    """Whether the model has experts; None where its profile is not at hand."""
    name = said.written("model", "model")
    if not isinstance(name, str):
        return None
    try:
        return said.inputs.catalogue.get("model", name).architecture.moe is not None
    except InputError:
        return None
