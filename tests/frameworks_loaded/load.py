"""
Load configurations by a framework's own code; runs under the Python of install.py, which has no rlsize.

    python load.py FOLDER < cases.json      # FOLDER: the framework's package; prints what each case came to, as JSON

A case has the framework's `name`, the `program` and the `words` after it, or the `text` of a file. What came of it is
`error`, or `values`: a flat mapping of keys to what the framework holds them to be. Only the code that reads and checks
configurations runs. What it imports besides (torch, ray, engines) is not there: a stand-in that does nothing takes its
place.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import tempfile
import types
import warnings
from enum import Enum
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
ABSENT = {"cloudpathlib", "colorlog", "loguru", "numba", "ray", "skyrl_gym", "torch", "uvloop"}
"""What has stand-ins: nothing of it reads configurations."""


class _StandIn(types.ModuleType):
    """A module of which all names are there: classes that take and give anything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = type(name, (_Anything,), {"__module__": self.__name__})
        setattr(self, name, found)
        return found


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__


class _Anything(metaclass=_Meta):
    """Something that may be called, subscripted, decorated with and inherited from."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) else _Anything()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __class_getitem__(cls, _: Any) -> Any:
        return cls


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stand-ins for what is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 (as it is called)
        if name.partition(".")[0] not in ABSENT:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        made = _StandIn(spec.name)
        made.__path__ = []
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def package(name: str) -> None:
    """A package of the framework without what its __init__ imports."""
    place = str(FOLDER / name.replace(".", "/"))
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [place]
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    module.__path__ = [place]
    spec.loader = importlib.machinery.NamespaceLoader(name, [place], lambda *_: spec)


def flat(value: Any, key: str = "") -> dict[str, Any]:
    """Values by dotted keys."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    elif isinstance(value, (argparse.Namespace, types.SimpleNamespace)):
        value = vars(value)
    if isinstance(value, dict) and (value or not key):
        found: dict[str, Any] = {}
        for name, inner in value.items():
            found |= flat(inner, f"{key}.{name}" if key else str(name))
        return found
    if isinstance(value, Enum):
        value = value.value
    return {key: value if isinstance(value, (bool, int, float, str, list, type(None))) else str(value)}


def verl(program: str, words: list[str], _: str) -> Any:
    """Hydra's composition of the configurations in the package, by the program's own name for them."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    folders = {
        "verl.trainer.main_ppo": ("verl/trainer/config", "ppo_trainer"),
        "verl.experimental.one_step_off_policy.main_ppo": (
            "verl/experimental/one_step_off_policy/config",
            "one_step_off_ppo_trainer",
        ),
        "verl.experimental.fully_async_policy.fully_async_main": (
            "verl/experimental/fully_async_policy/config",
            "fully_async_ppo_trainer",
        ),
    }
    folder, name = folders[program]
    source = (FOLDER / f"{program.replace('.', '/')}.py").read_text(encoding="utf-8")
    assert f'config_name="{name}"' in source, f"{program} has another configuration"
    named = [word.partition("=")[2] for word in words if word.startswith("--config-name=")]
    words = [word for word in words if not word.startswith("--")]
    name = named[-1].removesuffix(".yaml").strip("'\"") if named else name
    os.chdir(FOLDER)  # searched paths of some configurations are relative to it
    for one in ("verl", "verl.trainer", "verl.trainer.config"):
        package(one)
    with initialize_config_dir(str(FOLDER / folder), version_base=None):
        made = compose(name, overrides=words)
    return OmegaConf.to_container(made, resolve=False)


def openrlhf(program: str, words: list[str], _: str) -> Any:
    """All that the program does before it trains: its parser, and its checks of what was parsed."""
    source = (FOLDER / f"{program.replace('.', '/')}.py").read_text(encoding="utf-8")
    main = next(
        node for node in ast.parse(source).body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
    )
    *body, last = main.body
    assert ast.unparse(last) == "train(args)", "the program does something else"
    package("openrlhf")
    package("openrlhf.utils")
    sys.argv = [program, *words]
    names: dict[str, Any] = {}
    exec("import argparse, os\nfrom datetime import datetime", names)  # noqa: S102 (as at the head of the program)
    exec(compile(ast.Module(body, []), program, "exec"), names)  # noqa: S102 (the framework's own code is what is tested)
    return names["args"]


def trl(program: str, words: list[str], text: str) -> Any:
    """The parser and the checks of each program's classes; TrainingArguments' own need a device, and are left out."""
    import transformers
    from transformers import HfArgumentParser
    from transformers.training_args import TrainingArguments

    transformers.TrainingArguments = TrainingArguments  # without torch, the package has something else in its place
    world = int(text)
    TrainingArguments.__post_init__ = lambda _: None
    TrainingArguments.device = types.SimpleNamespace(type="cuda")
    TrainingArguments.world_size = property(lambda _: world)
    if program == "vllm-serve":
        places = ["trl.scripts.vllm_serve.ScriptArguments"]
    else:
        importlib.import_module("trl")
        for one in ("trl.experimental", "trl.experimental.async_grpo"):  # whose trainer asks for torch
            package(one)
        own = "experimental.async_grpo.async_grpo_config.AsyncGRPOConfig" if "async" in program else ""
        places = ["trl.scripts.grpo.GRPOScriptArguments", f"trl.{own or 'trainer.grpo_config.GRPOConfig'}"]
        places.append("trl.trainer.model_config.ModelConfig")
    kinds = [getattr(importlib.import_module(place.rpartition(".")[0]), place.rpartition(".")[2]) for place in places]
    found: dict[str, Any] = {}
    for some in (kinds[:2], kinds[2:]):  # the classes of a newer release have a key in common
        *made, words = HfArgumentParser(some).parse_args_into_dataclasses(words, return_remaining_strings=True)
        for one in made:
            found |= flat(one)
    assert not words, f"nobody takes {words}"
    return found


def areal(_: str, words: list[str], text: str) -> Any:
    """AReaL's own reading of a file and overrides, merged into the types of its trainer's configuration."""
    for name in ("areal", "areal.api", "areal.engine", "areal.engine.fsdp_utils", "areal.utils"):
        package(name)
    for name in ("areal.infra", "areal.infra.platforms", "transformers.integrations.hub_kernels"):
        sys.modules[name] = module = _StandIn(name)
        module.__path__ = []
    from omegaconf import OmegaConf

    arguments = importlib.import_module("areal.api.cli_args")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(text, encoding="utf-8")
        read, _file = arguments.parse_cli_args(["--config", str(path), *words])
    merged = arguments.to_structured_cfg(read, config_cls=arguments.GRPOConfig)
    parts = ("actor", "rollout", "gconfig", "sglang", "vllm")
    whole = merged.copy()
    for key in OmegaConf.missing_keys(whole):
        if key.startswith(parts):  # names and paths, which no plan knows
            OmegaConf.update(whole, key, "x")
    for part in parts:  # the classes themselves check what they are given
        OmegaConf.to_object(whole[part])
    return OmegaConf.to_container(merged)


def skyrl(_: str, words: list[str], __: str) -> Any:
    """SkyRL's own classes, and its checks of what they hold."""
    engines = types.ModuleType("skyrl.backends.skyrl_train.inference_servers.utils")
    vars(engines)["_uses_lora_weight_sync"] = lambda _: False  # of engines, which are not there
    sys.modules[engines.__name__] = engines
    arguments = importlib.import_module("skyrl.train.config.config")
    made = arguments.SkyRLTrainConfig.from_cli_overrides(words)
    import typing

    import typing_extensions

    vars(typing)["TypedDict"] = typing_extensions.TypedDict  # which pydantic asks for under this Python
    checks = importlib.import_module("skyrl.train.utils.utils")
    checks.validate_batch_sizes(made)
    checks.validate_generator_cfg(made)
    if made.trainer.strategy == "megatron":
        checks.validate_megatron_cfg(made)
    return made


LOADERS = {"verl": verl, "openrlhf": openrlhf, "trl": trl, "areal": areal, "skyrl": skyrl}


def main() -> None:
    """Load all cases, each in a process of its own, as frameworks keep what they were told."""
    cases = json.load(sys.stdin)
    sys.path.insert(0, str(FOLDER))
    results = [_apart(case) for case in cases]
    json.dump(results, sys.stdout)


def _apart(case: dict[str, Any]) -> dict[str, Any]:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        result = _loaded(case)
        with os.fdopen(write, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return json.loads(told) if told else {"error": "it ended without a word"}


def _loaded(case: dict[str, Any]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    said = io.StringIO()
    try:
        if case["name"] != "trl":
            sys.meta_path.append(_StandIns())
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            made = LOADERS[case["name"]](case.get("program", ""), case.get("words", []), case.get("text", ""))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a framework says against it is the answer)
        if "--trace" in sys.argv:
            import traceback

            traceback.print_exc(file=sys.__stderr__)
        return {"error": f"{type(error).__name__}: {error} {said.getvalue()[-600:]}".strip()}
    return {"values": flat(made)}


if __name__ == "__main__":
    main()
