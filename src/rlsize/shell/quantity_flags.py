"""Flags of the quantities that a command asks for, made from their rows."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial, wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, get_type_hints

import typer
from typer.models import OptionInfo

from rlsize.errors import InputError, Refused
from rlsize.facts.fields import Quantity
from rlsize.quantities.row import Switch, Text
from rlsize.quantities.table import PLACES, QUANTITIES
from rlsize.reports.report import Report
from rlsize.shell.command import CI_PANEL, OUTPUT_PANEL, Profiles, argument, declared
from rlsize.shell.inputs import Inputs
from rlsize.units import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlsize.errors import Fault
    from rlsize.quantities.row import Row

Asked: TypeAlias = str | tuple[str, str]
"""A key, or a key with the flag by which this command asks for it."""


Again: TypeAlias = "tuple[Callable[..., Inputs], Callable[[Inputs], Report]]"
"""Makes inputs of what flags and `--set` say, and answers them without leaving another trace."""


class Unassumed(str):
    """A key of which a command assumes nothing where nobody says it: the row's default does not hold there."""

    __slots__ = ()


_PREFIX = "quantity_"  # of the parameters, so that none has the name of an argument of the command

ScenarioFile = Annotated[
    str | None, argument("SCENARIO", "A scenario, a saved plan or a launch script; flags override what it says.")
]


def _keys_begun(incomplete: str) -> list[str]:
    """Keys of a scenario that begin as typed, for the shell to complete."""
    return [f"{place}=" for place in PLACES if place.startswith(incomplete)]


_PROFILED = {"model": "model", "gpu": "gpu", "rollout_gpu": "gpu", "trainer_gpu": "gpu", "framework": "framework"}


def _words_begun(row: Row) -> Callable[[str], list[str]] | None:
    """What completes a quantity: its words, or the profiles of its kind; None where numbers are said."""
    if not row.words and row.key not in _PROFILED:
        return None

    def begun(incomplete: str) -> list[str]:
        from rlsize.readers.profiles import Catalogue

        words = row.words or Catalogue().names(_PROFILED[row.key])
        return [word for word in words if word.startswith(incomplete)]

    return begun


Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any key of a scenario, such as rollout.max_num_seqs=256; repeatable.",
        rich_help_panel="Inputs",
        metavar="KEY=VALUE",
        show_default=False,
        autocompletion=_keys_begun,
    ),
]
LOOP = ("model", "gpu", "mode", "gpus", "rollout_gpus", "trainer_gpus", "max_staleness", "transport")
BATCH = ("prompts_per_step", "group_size")
LENGTHS = ("prompt_tokens", "response_tokens", "response_cv", "max_response_tokens")
WORKLOAD = (*BATCH, "samples_per_step", *LENGTHS, "updates", "mini_batches")
AGENTS = (
    "turns", "turn_end_fraction", "tool_seconds", "tool_cv", "tool_tokens", "environments", "environment_seconds",
    "failed_fraction", "redundant_samples", "verify_seconds", "verify_cv", "verify_failed_fraction",
    "verify_workers",
)  # fmt: skip
INSTANCE = (
    "engine", "engine_version", "rollout_tensor_parallel", "rollout_pipeline_parallel", "rollout_data_parallel",
    "rollout_expert_parallel", "rollout_dtype", "kv_dtype", "memory_fraction", "max_num_seqs",
)  # fmt: skip
LAYOUT = (
    "fsdp", "zero_stage", "data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel",
    "expert_parallel",
)  # fmt: skip
TRAINER = (
    *LAYOUT, "micro_batch_tokens", "recompute", "optimizer", "gradients", "lora_rank", "offload", "dtype", "compiled",
    "native_attention",
)  # fmt: skip
ALGORITHM = ("algorithm", "old_logprob", "reference", "critic", "reward_model")
PRICES = ("gpu_hour_usd", "rollout_gpu_hour_usd", "trainer_gpu_hour_usd", "price")
ANSWER = ("calibration", "seed")
MATCH = (
    "consumption_tokens_per_second", "batch_tokens", "train_seconds", "prompts_per_step", "group_size",
    "response_tokens", "instance_tokens_per_second", "accept_lower_bound", "headroom",
    "tokens_generated_per_trained_token",
)  # fmt: skip
WASTE = ("oversampling", "kept_fraction", "dropped_fraction")
CHECKS = ("model", "params", "gpu")
REFUSED = ("step_seconds",)
_SIDES = ("rollout_", "wire_")
_GIVEN_BY: Mapping[tuple[str, ...], str] = {
    ("consumption_tokens_per_second", "train_seconds", "trainer_gpu_tokens_per_second"): (
        "`rlsize predict train` predicts it, `rlsize observe` reads it from a training log"
    ),
    ("instance_tokens_per_second", "rollout_gpu_tokens_per_second", "group_seconds", "rollout_seconds"): (
        "`rlsize predict rollout` predicts it, `rlsize measure` measures it, `rlsize observe` reads it from engines"
    ),
    ("step_seconds",): "`rlsize predict step` predicts it, `rlsize observe` reads it from a training log",
    ("sync_seconds",): "`rlsize predict sync` predicts it",
    ("instances", "rollout_gpus", "trainer_gpus"): "`rlsize plan` finds how many are best",
    ("gpu_hour_usd", "rollout_gpu_hour_usd", "trainer_gpu_hour_usd"): "`rlsize profiles list price` has some",
}
"""Which command gives a quantity that another one lacks."""
_REFUSED = "Refused"  # the panel of flags that are taken to be refused with a reason, which no help shows
_SHORT_HELP = 15  # flags that a help page shows at first, those of output apart
_FEWEST = 5  # quantities among them, however many flags a command has of its own
_APART = {"Access", "KEDA", "Kueue"}  # panels of a matter of their own, which only a whole help shows
_ASKED_MOST = (
    "model", "gpu", "gpus", "mode", "rollout_gpus", "trainer_gpus", "instances", "prompts_per_step", "group_size",
    "prompt_tokens", "response_tokens", "framework", "objective", "budget_file", "finish_by_seconds", "max_staleness",
    "gpu_hour_usd", "train_seconds", "instance_tokens_per_second", "consumption_tokens_per_second", "step_seconds",
    "sync_seconds", "steps", "simulated_steps", "seeds", "headroom", "max_response_tokens", "rollout_tensor_parallel",
    "concurrency", "engine", "fsdp", "tensor_parallel", "recompute", "micro_batch_tokens", "optimizer", "offload",
    "transport", "link", "cluster", "bandwidth_bytes_per_second", "rollout_seconds", "batch_tokens",
    "gpus_per_instance", "samples_per_step", "seconds", "measurement_seconds", "idle_target_fraction",
)  # fmt: skip
"""Quantities by how often people ask for them."""
KNOWN_RATES = (
    "instance_tokens_per_second", "accept_lower_bound", "gpus_per_instance", "headroom",
    "rollout_gpu_tokens_per_second", "trainer_gpu_tokens_per_second", "train_seconds",
    "consumption_tokens_per_second", "measured_trainer_gpus", "sync_seconds", "overhead_seconds", "batch_tokens",
)  # fmt: skip
PLANNED: Mapping[str, tuple[Asked, ...]] = {
    "Loop": ("model", "gpu", "gpus", "framework", "max_staleness"),
    "Goal_and_limits": ("objective", "least_steps_per_day", "finish_by_seconds", "budget_file", "memory_margin"),
    "Search": (
        "searched_modes", "searched_rollout_gpus", "searched_trainer_gpus", "searched_transports",
        "searched_rollout_tensor_parallel", "searched_rollout_data_parallel", "searched_rollout_pipeline_parallel",
        "searched_tensor_parallel",
        "searched_pipeline_parallel", "searched_context_parallel", "searched_expert_parallel", "searched_recompute",
        "searched_micro_batch_tokens", "whole_nodes", "rollout_pools", "trainer_pools", "simulated_plans",
    ),
    "Workload": WORKLOAD,
    "Rollout_instances": ("engine", "engine_version", "rollout_dtype", "kv_dtype", "memory_fraction", "max_num_seqs"),
    "Trainer": ("optimizer", "gradients", "lora_rank", "offload", "dtype", "compiled", "native_attention"),
    "Passes": ALGORITHM,
    "Rates_that_are_known": KNOWN_RATES,
    "Prices": PRICES,
    "Run": ("steps",),
    "Inputs": ANSWER,
}  # fmt: skip
"""What `plan` and `report` ask for, by panel."""


class Asks(NamedTuple):
    """
    What a command asks for.

    Args:
        panels: Keys by the panel of help in which their flags stand.
    """

    panels: Mapping[str, tuple[Asked, ...]]

    @property
    def flags(self) -> dict[str, str]:
        """The first flag of each quantity."""
        return {row.key: names[0] for row, names, *_ in self._declared()}

    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of a function that typer makes into these flags."""
        return [_parameter(row, names, panel, assumed=assumed) for row, names, panel, assumed in self._declared()]

    def with_command(self, fault: Fault) -> Fault:
        """The fault of a quantity that is missing, with the command that would give it."""
        key = next((key for key, flag in self.flags.items() if flag == fault.where), "")
        by = next((by for keys, by in _GIVEN_BY.items() if key in keys), "")
        if not by or "missing" not in fault.what or by in fault.todo:
            return fault
        return fault._replace(todo=f"{fault.todo}; {by}".removeprefix("; "))

    def rarer(self, told: str, own: Iterable[inspect.Parameter]) -> frozenset[str]:
        """
        Parameters that a short help leaves out: all but those of its example, and the first few of what is asked most.

        Args:
            told: The help, with its example.
            own: Flags that the command declares itself, which come first, but for those of a matter of their own.
        """
        panels = {one.name: _panel(one) for one in own}
        beside = [panel for panel in panels.values() if panel not in {None, OUTPUT_PANEL, *_APART}]
        most = max(_FEWEST, _SHORT_HELP - len(beside))
        example = {*told.partition("Example:")[2].split()}
        declared_here = [row.key for row, _, panel, _ in self._declared() if panel != _REFUSED]
        first = [row.key for row, names, *_ in self._declared() if example & {*names}]
        usual = (key for key in _ASKED_MOST if key in declared_here and key not in first)
        first += [*usual][: max(0, most - len(first))]
        rare = [key for key in declared_here if key not in first] if len(declared_here) > most else []
        return frozenset(
            {*(f"{_PREFIX}{key}" for key in rare), *(one for one, panel in panels.items() if panel in _APART)}
        )

    def _declared(self) -> Iterator[tuple[Row, list[str], str, bool]]:
        """Each quantity with its flags here and their panel, and whether its default holds here."""
        for panel, keys in self.panels.items():
            for asked in keys:
                key, own = (asked, "") if isinstance(asked, str) else asked
                names = own.split("|") if own else [*QUANTITIES[key].flags]
                yield QUANTITIES[key], names, panel, not isinstance(asked, Unassumed)


def short(*keys: str) -> tuple[Asked, ...]:
    """
    The same keys for a command about one side, whose flags need not name it.

    >>> short("engine", "rollout_dtype")
    ('engine', ('rollout_dtype', '--dtype|--rollout-dtype'))
    """
    return tuple(
        (key, f"--{key.partition('_')[2].replace('_', '-')}|{QUANTITIES[key].flag}") if key.startswith(_SIDES) else key
        for key in keys
    )


def texts_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the flags of quantities say, by key, of all that a function was called with."""
    return {
        name.removeprefix(_PREFIX): ",".join(text) if isinstance(text, (list, tuple)) else text
        for name, text in arguments.items()
        if name.startswith(_PREFIX) and text is not None
    }


def _parameter(row: Row, names: list[str], panel: str, *, assumed: bool) -> inspect.Parameter:
    takes: Any = str | None
    metavar = row.kind.metavar if isinstance(row.kind, Text) else "NAME" if row.words else "NUMBER"
    if isinstance(row.kind, Quantity) and row.kind.or_file:
        metavar = "NUMBER|FILE"
    yes_or_no = isinstance(row.kind, Switch) or (isinstance(row.kind, Text) and row.kind.or_yes)
    if yes_or_no:
        takes = bool | None
        no = row.kind.no if isinstance(row.kind, Switch) else f"--no-{names[0].removeprefix('--')}"
        names[0] += f"/{no}" if no else ""
    elif isinstance(row.kind, Text) and row.kind.many:
        takes = list[str] | None
    told = typer.Option(
        *names,
        help=_help(row if assumed else row._replace(default=None)),
        rich_help_panel=panel,
        metavar=None if yes_or_no else metavar,
        show_default=False,
        hidden=panel == _REFUSED,
        autocompletion=None if yes_or_no else _words_begun(row),
    )
    return inspect.Parameter(
        f"{_PREFIX}{row.key}", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[takes, told]
    )


def _help(row: Row) -> str:
    """The sentence of a row, with the words that there are and what holds where the flag is left out."""
    text = row.meaning.removesuffix(".")
    words = [word for word in row.words if word not in text]
    if len(words) == len(row.words) and words:
        text += f": {listed(words, 'or')}"
    if row.default is not None and not isinstance(row.default, bool) and "when not given" not in text:
        shown = f"{row.default:g}" if isinstance(row.default, (int, float)) else row.default
        text += f"; {shown} when not given"
    return f"{text}."


def asks(
    shared: Mapping[str, tuple[Asked, ...]] = MappingProxyType({}),
    /,
    *,
    beside_files: bool = False,
    once: bool | None = None,
    **panels: tuple[Asked, ...],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """
    Let a command ask for quantities: it becomes a function of `Inputs`, and of flags of its own.

    Args:
        shared: Panels that several commands have.
        beside_files: Whether the command declares the files that it takes, and reads them by `Inputs.read`; else it
            takes a scenario and `--set`.
        once: Whether it takes too long, or does too much, to be asked again with other values; by default where it
            declares its files. One that declares them and is asked again takes a `scenario` and `changes`, and finds
            neither then, as the scenario is in its inputs.
        panels: Keys by panel; an underscore in the panel's name stands for a space. Those of the panel `Refused` are
            taken to be refused with a reason, and not shown in help.

    The command takes `--profiles`, and the flags of the quantities, beside what it declares. A parameter whose type is
    a dataclass stands for its fields, each of which is a flag.
    """
    reads, once = not beside_files, beside_files if once is None else once
    asked = Asks({name.replace("_", " "): keys for name, keys in {**shared, **panels}.items()})

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command, eval_str=True)
        taken = [one for name, one in signature.parameters.items() if name != "inputs"]
        groups: dict[str, Any] = {one.name: one.annotation for one in taken if is_dataclass(one.annotation)}

        @wraps(command)
        def answer(profiles: list[str] | None = None, **own: Any) -> Any:
            file, changes = (own.pop("scenario", None), own.pop("changes", None)) if reads else (None, None)
            said = texts_of(own)
            own = {name: value for name, value in own.items() if not name.startswith(_PREFIX)}

            def made(texts: Mapping[str, Any], changes: Iterable[str], scenario: str | None = file) -> Inputs:
                found = Inputs(scenario, profiles, texts=texts, flags=asked.flags, changes=changes)
                found.check_texts()
                return found

            def answered(inputs: Inputs, own: dict[str, Any]) -> Any:
                own = {**own}
                for name, group in groups.items():
                    own[name] = group(**{each.name: own.pop(each.name) for each in fields(group)})
                return _answer(command, inputs, own)

            inputs = made(said, changes or ())
            try:
                report = answered(inputs, own)
            except InputError as error:  # what is missing may stand in a file that the launch names
                lacking = [note for note in inputs.notes if " is missing: " in note]
                sys.stderr.write("".join(f"note: {note}\n" for note in lacking))
                error.faults = tuple(map(asked.with_command, error.faults))
                raise
            if not isinstance(report, Report):
                return report
            unwritten = {**own, **dict.fromkeys(written)}
            again = partial(made, scenario=file if reads else own.get("scenario"))
            return _finished(inputs, report, asked, None if once else (again, lambda other: answered(other, unwritten)))

        own = [each for one in taken for each in _flags_of(one, groups.get(one.name))]
        written = [one.name for one in own if _panel(one) in {OUTPUT_PANEL, CI_PANEL}]
        written += [] if reads else ["scenario", "changes"]
        keyword = inspect.Parameter.KEYWORD_ONLY
        shared = [
            *([inspect.Parameter("scenario", keyword, default=None, annotation=ScenarioFile)] if reads else []),
            *(one for one in own if one.default is inspect.Parameter.empty),
            *asked.parameters(),
            *(one for one in own if one.default is not inspect.Parameter.empty),
            *([inspect.Parameter("changes", keyword, default=None, annotation=Changes)] if reads else []),
            inspect.Parameter("profiles", keyword, default=None, annotation=Profiles),
        ]
        answer.__signature__ = signature.replace(parameters=shared)  # type: ignore[attr-defined]  # what typer reads
        vars(answer)["rarer"] = asked.rarer(command.__doc__ or "", own)  # what help goes by
        answer.__annotations__ = {one.name: one.annotation for one in shared}
        answer.__annotations__["return"] = getattr(command, "__annotations__", {}).get("return")
        return answer

    return decorated


def _answer(command: Callable[..., Any], inputs: Inputs, own: Mapping[str, Any]) -> Any:
    """What a command answers: no, where the loop that it needs cannot run."""
    try:
        return command(inputs, **own)
    except Refused as refusal:
        from rlsize.reports.running_loop import refused_report

        return refused_report(command.__name__, str(refusal), inputs.told())


def _finished(inputs: Inputs, report: Report, asked: Asks, again: Again | None) -> Report:
    """
    A report with what was said and has no bearing on it.

    Args:
        inputs: What was said.
        report: The answer of a command.
        asked: What it asks for.
        again: How it is asked again; None where it is not.
    """
    inputs.check_unasked()
    if inputs.refused:
        from rlsize.loop.said import cannot_run

        why = cannot_run(inputs.refused)
        told = () if why in report.headline else (why,)
        report = replace(report, no=True, warnings=(*told, *report.warnings))
    idle = {*PRICES, "steps"}.difference(asked.flags)  # a loop asks for them; this command tells no money
    for key in idle:
        inputs.drop(key)
    unused: tuple[str, ...] = inputs.unused()
    told = (f"Not used here: {', '.join(unused)}",) if unused else ()
    plain_no = report.no and all(isinstance(figure.value, bool) for figure in report.results)  # no figure to move
    if again is not None and not inputs.refused and not plain_no:
        from rlsize.shell.bearing import without_bearing

        typed = without_bearing(inputs, report, *again)
        told = (*told, f"No figure here depends on: {', '.join(typed)}") if typed else told
    used = tuple(figure for figure in report.inputs if figure.key not in idle)
    return replace(report, inputs=used, notes=(*report.notes, *told), unused=(*inputs.ignored, *told))


def _panel(parameter: inspect.Parameter) -> str | None:
    """The panel of help in which a flag of a command stands."""
    said = getattr(parameter.annotation, "__metadata__", ())
    return next((one.rich_help_panel for one in said if isinstance(one, OptionInfo)), None)


def _flags_of(parameter: inspect.Parameter, group: Any) -> list[inspect.Parameter]:
    """The parameter, or those that its dataclass stands for."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    if group is None:
        return [declared(parameter.replace(kind=keyword))]
    hints = get_type_hints(group, include_extras=True)
    return [
        declared(inspect.Parameter(each.name, keyword, default=each.default, annotation=hints[each.name]))
        for each in fields(group)
    ]
