"""
Scenario files: YAML, checked against `quantities.scenario`, with the line of every key kept for messages.

What else holds a scenario is read as one: a saved plan, and of an observation its allocation.
"""

from __future__ import annotations

import re
import sys
from copy import deepcopy
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, a_file, refuse, suggestion
from rlsize.frozen import dataclass
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import (
    LARGEST_FILE,
    Document,
    Path_,
    parse_document,
    read_document,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlsize.readers.launch.launch import Launch
    from rlsize.readers.profiles import Catalogue

_HEADER = re.compile(r"^[ \t]*[\"']?rlsize[\"']?\s*:", re.MULTILINE)
_HEAD = 2**20  # bytes of a long log in which its configuration stands
_OWN = (".yaml", ".yml")  # endings of rlsize's own files, whose faults are told as theirs

_COUNTS = ("gpus", "rollout_gpus", "trainer_gpus", "gpus_per_node")
"""What a launch may leave to whoever starts it, and other quantities hang on."""
_LENGTHS = ["workload", "response_tokens"]
_YES_OR_NO = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0"})
_CALIBRATED = "--calibration"
_IN_PLAN = "scenario"  # the key of a saved plan below which its scenario stands


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """
    A scenario and where each of its values stands.

    Args:
        scenario: What the file says.
        document: The file, for lines.
        places: Where keys were said, where that is not the line of a scenario: keys of a framework.
        notes: What a reader of the file must know.
        warnings: What of it could not be understood.
        launch: The launch that it was read from; None where it is a scenario of its own.
    """

    scenario: Any
    document: Document
    places: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    launch: Launch | None = None

    def value(self, key: str) -> Any:  # noqa: ANN401 (any field)
        """The value at a dotted key; None where the file does not say."""
        node: Any = self.scenario
        for part in key.split("."):
            node = getattr(node, part, None)
            if node is None:
                return None
        return node

    def where(self, key: str) -> str:
        """File, line and key."""
        return self.places.get(key) or self.document.where(tuple(key.split(".")))

    def leaves(self) -> dict[str, Any]:
        """What it says, as it is written, by dotted key."""
        return dict(_leaves(self.document.data))

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file start from."""
        return Path(self.document.name).parent


def read_scenario(
    path: str | Path | None,
    changes: Iterable[str] = (),
    *,
    framework: str = "",
    catalogue: Callable[[], Catalogue] | None = None,
    flags: Mapping[str, str | bool] = MappingProxyType({}),
) -> ScenarioFile:
    """
    A scenario: a file of its own, the one that a saved plan holds, or what a framework's launch says.

    Args:
        path: The file, `-` for a launch on standard input; an empty scenario when None.
        changes: What is said in its place: `key=value`, the key dotted.
        framework: The framework that a launch is for, `NAME` or `NAME@VERSION`; told by its content when empty.
        catalogue: The profiles that a launch is read by; the shipped ones when None.
        flags: What flags say, by quantity: its GPUs, where a launch does not tell them and other quantities hang on it.

    Raises:
        InputError: Everything that is wrong with it, with file, line and key.
    """
    if path is None:
        return scenario_of(Document("--set", {}), changes)
    text = text_of(path)
    if not _HEADER.search(text):
        from rlsize.readers.profiles import Catalogue

        profiles = Catalogue() if catalogue is None else catalogue()
        try:
            return launched_scenario(str(path), framework, profiles, tuple(changes), text, flags)[0]
        except InputError:
            if framework or not str(path).endswith(_OWN) or not _has_its_keys(parse_document(text, str(path))):
                raise
    document = parse_document(text, str(path))
    found = scenario_of(_opened(document), changes)
    if "calibration" in flags or _CALIBRATED not in str(document.data.get("command")).split():
        return found
    return replace(found, warnings=(f"{path} was planned with a calibration, which it does not hold: {_CALIBRATED}",))


def _has_its_keys(document: Document) -> bool:
    """Whether half of a file's keys, or more, are those of a scenario: one without its first line, and no launch."""
    from rlsize.quantities.table import PLACES

    own = {place.partition(".")[0] for place in PLACES}
    keys = document.data.keys() if isinstance(document.data, dict) else ()
    return 2 * sum(key in own for key in keys) >= len(keys)


def launched_scenario(
    path: str,
    framework: str,
    catalogue: Catalogue,
    changes: Iterable[str] = (),
    text: str | None = None,
    flags: Mapping[str, str | bool] = MappingProxyType({}),
) -> tuple[ScenarioFile, Launch]:
    """
    What a launch says, as a scenario.

    Args:
        path: The file; `-` for standard input.
        framework: The framework that it is for, `NAME` or `NAME@VERSION`; told by its content when empty.
        catalogue: The profiles.
        changes: What is said in its place: `key=value`, the key dotted; `framework=NAME` goes before `framework`.
        text: What it holds, where it was read before.
        flags: What flags say, by quantity.

    Raises:
        InputError: Everything that is wrong with it.
    """
    from rlsize.quantities.table import QUANTITIES
    from rlsize.readers.frameworks import frameworks
    from rlsize.readers.launch.launch import read_launch
    from rlsize.readers.launch.scenario import doubts, scenario_of_launch

    kept = [change for change in changes if not change.startswith("framework=")]
    named = next((change.partition("=")[2] for change in changes if change not in kept), framework)
    instead = dict(change.partition("=")[::2] for change in kept)
    counts = {key: str(flags.get(key, instead.get(QUANTITIES[key].scenario, ""))).strip() for key in _COUNTS}
    launch = read_launch(
        path,
        frameworks(catalogue),
        framework=named.strip(),
        text=text_of(path) if text is None else text,
        given={key: int(count) for key, count in counts.items() if count.isdecimal()},
    )
    own = launch.reading.changed({}, {}).quantity("trainer_gpus") is not None
    document, places = scenario_of_launch(launch, catalogue, other_gpus=own and any(counts.values()))
    said = {key.strip() for key in instead}
    model = "" if "model" in {*said, *flags} else str(document.data.get("model", ""))
    found = replace(
        scenario_of(document, kept),
        places={key: place for key, place in places.items() if key not in said},
        notes=(
            f"{path} launches {launch.framework.title}.",
            *(note for note in launch.notes if note not in launch.gaps),
        ),
        warnings=(*launch.gaps, *doubts(launch, model)),
        launch=launch,
    )
    return found, launch


def text_of(path: str | Path) -> str:
    """
    What a scenario or a launch says; of a log, which may be of any length, the beginning, where configurations stand.

    Raises:
        InputError: It cannot be read, or is no text.
    """
    if path == "-":
        return sys.stdin.read(LARGEST_FILE + 1)
    from rlsize.readers.logs.forms.wandb_file import config_text

    file = Path(path)
    if file.is_file() and file.stat().st_size > LARGEST_FILE:
        from rlsize.readers.logs.recognising import is_log

        if is_log(str(path), loosely=False):
            with file.open("rb") as stream:
                return stream.read(_HEAD).decode("utf-8", errors="replace")
    return config_text(path) or read_text(path)


def scenario_of(document: Document, changes: Iterable[str] = ()) -> ScenarioFile:
    """
    The scenario in a document that has no header any more; as `read_scenario`.

    Raises:
        InputError: Everything that is wrong with it.
    """
    from rlsize.quantities.scenario import Scenario

    document = _with_reference(_changed(document, changes))
    return ScenarioFile(validated(Scenario, document), document)


def _with_reference(document: Document) -> Document:
    """A model in place of the yes to `algorithm.reference`: the reference is that one."""
    said = document.data.get("algorithm") if isinstance(document.data, dict) else None
    model = said.get("reference") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(model, str) or model.lower() in _YES_OR_NO:
        return document
    data = document.data | {"algorithm": {"reference_model": model, **said, "reference": True}}
    place = document.lines.get(("algorithm", "reference"))
    lines = document.lines if place is None else {("algorithm", "reference_model"): place, **document.lines}
    return replace(document, data=data, lines=lines)


def _opened(document: Document) -> Document:
    """The scenario in a file, without its header; that of a plan stands below a key of its own."""
    if document.kind != "plan":
        return opened(document, "scenario")
    plan = opened(document, "plan")
    found = plan.data.get(_IN_PLAN)
    if not isinstance(found, dict):
        what = f"is a plan without a {_IN_PLAN}, as that of a hybrid loop is"
        todo = "make it again with `rlsize plan SCENARIO --save`, or name the scenario that it was made from"
        raise InputError(Fault(what, document.name, todo))
    lines = {path[1:]: line for path, line in plan.lines.items() if path[:1] == (_IN_PLAN,)}
    return Document(document.name, found, lines)


def with_values(file: ScenarioFile, values: Mapping[str, Any]) -> ScenarioFile:
    """
    A scenario that says some things otherwise.

    Args:
        file: The scenario.
        values: What it says, by dotted key; None where it no longer says anything.

    Raises:
        InputError: A scenario cannot say that.
    """
    data = deepcopy(file.document.data)
    for place, value in values.items():
        if not _put(data, place.split("."), value):
            raise InputError(Fault(f"{place} lies below a key that holds a value", place, "change that key instead"))
    return replace(scenario_of(replace(file.document, data=data)), places=file.places, launch=file.launch)


def _changed(document: Document, changes: Iterable[str]) -> Document:
    """The document with some values said anew."""
    from rlsize.quantities.table import PLACES

    faults, paths = [], set()
    data = deepcopy(document.data)
    for change in changes:
        key, equals, value = change.partition("=")
        place = key.strip()
        paths.add(tuple(place.split(".")))
        if not equals:
            faults.append(Fault(f"{change[:60]!r} has no value", "--set", "write key=value"))
        elif place not in (*PLACES, "workload.response_tokens") and not place.startswith("budget."):
            faults.append(Fault(f"the key {place[:60]} is unknown", "--set", suggestion(place[:60], PLACES, PLACES)))
        elif not _put(data, place.split("."), parse_document(f"value: {value.strip()}", "--set").data["value"]):
            faults.append(Fault(f"{place} lies below a key that holds a value", "--set", "change that key instead"))
    refuse(faults)
    return replace(document, data=data, changed=document.changed | paths)


def _put(data: Any, path: list[str], value: Any) -> bool:  # noqa: ANN401 (YAML content)
    """Set a value; whether there is a place for it."""
    node = data
    for part in path[:-1]:
        if not isinstance(node, dict):
            return False
        if node.get(part) is None:  # also one that was taken away as a whole
            node[part] = {}
        node = node[part]
        if path[:-1] == _LENGTHS and part == _LENGTHS[-1] and not isinstance(node, dict):
            node = data[_LENGTHS[0]][part] = {"mean": node}  # what stands alone there is the mean
    if not isinstance(node, dict):
        return False
    node[path[-1]] = value
    return True


def _leaves(data: Any, above: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (YAML content)
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, f"{above}.{key}" if above else str(key))
    elif data is not None:
        yield above, data


def read_allocation(path: str, changes: Iterable[str] = (), **launch: Any) -> ScenarioFile:  # noqa: ANN401 (as it takes)
    """
    The allocation of a file, as a scenario.

    Args:
        path: A scenario, a launch, a saved plan or an observation.
        changes: What is said in its place: `key=value`, the key dotted.
        launch: How `read_scenario` reads a launch.

    Raises:
        InputError: What is wrong with it, or it holds no allocation.
    """
    from rlsize.quantities.table import QUANTITIES, nested

    if path == "-" or not _HEADER.search(text_of(path)):
        return read_scenario(path, changes, **launch)
    document = read_document(path)
    kind = document.kind
    if kind in {"scenario", "plan"}:
        return read_scenario(path, changes)
    if kind != "observation":
        what = f"is {a_file(str(kind)[:40])}, and holds no allocation"
        todo = "name a saved plan (`rlsize plan ... --save FILE`), a scenario, a launch or an observation"
        raise InputError(Fault(what, path, todo))
    said = {QUANTITIES[key].scenario: one for key, one in _observed(document).items() if one[0] is not None}
    data = {place: value for place, (value, _) in said.items()}
    lines: dict[Path_, int] = {
        tuple(place.split(".")): document.lines.get(path, 1) for place, (_, path) in said.items()
    }
    return scenario_of(Document(path, nested(data), lines), changes)


def _observed(document: Document) -> dict[str, tuple[Any, Path_]]:
    from rlsize.readers.saved_files import read_observation

    seen = read_observation(document)
    pools, size = seen.allocation, seen.allocation.gpus_per_instance
    count, rollout = pools.rollout_instances, pools.rollout_gpus
    count = rollout / size if count is None and rollout is not None and size else count
    rollout = count * size if rollout is None and count is not None and size else rollout
    told = {"instances": count, "rollout_gpus": rollout, "trainer_gpus": pools.trainer_gpus}
    found: dict[str, tuple[Any, Path_]] = {key: (value, ("allocation", key)) for key, value in told.items()}
    found["instances"] = (count, ("allocation", "rollout_instances"))
    mode = "sync" if seen.mode == "synchronous" else seen.mode
    return found | {"mode": (mode or None, ("mode",)), "engine": (seen.engine or None, ("engine",))}
