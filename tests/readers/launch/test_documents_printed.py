"""Python scripts and printed configurations as settings."""

from __future__ import annotations

import json
import pprint
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import NIGHTLY

from rlsize.errors import InputError
from rlsize.facts.launch import Settings
from rlsize.readers.launch.documents import read_settings


def read(text: str, name: str = "run.py") -> Settings:
    """The settings of a text that has no files beside it."""
    return read_settings(text, name, lambda _: None)


def values(found: Settings) -> dict[str, Any]:
    """Values by key."""
    return {setting.key: setting.value for setting in found.settings}


# Python

_SCRIPT = """
import os
from trl import GRPOConfig, GRPOTrainer
NAME = "Qwen/Qwen3-8B"  # é
G = 8
common = dict(num_generations=G, temperature=1.0)

def main(rows):
    steps = 2 * G // 4
    config = GRPOConfig(
        output_dir=f"out-{G}", per_device_train_batch_size=16, learning_rate=-1e-6, bf16=True, gamma=None,
        gradient_accumulation_steps=steps, betas=(0.9, 0.95), seed=int(os.environ["SEED"]), **common,
        model_init_kwargs={"torch_dtype": torch.bfloat16, "attn": "fa2"},
    )
    trainer = GRPOTrainer(model=NAME, args=config, train_dataset=rows)
    AutoModel.from_pretrained(NAME, torch_dtype="auto")
    vllm.LLM("small", tensor_parallel_size=2)
"""


def test_arguments_of_calls_are_settings() -> None:
    """Arguments of calls are settings."""
    found = read(_SCRIPT)
    assert found.form == "python"
    assert values(found) == {
        "GRPOConfig.output_dir": "out-8",
        "GRPOConfig.per_device_train_batch_size": 16,
        "GRPOConfig.learning_rate": -1e-6,
        "GRPOConfig.bf16": True,
        "GRPOConfig.gamma": None,
        "GRPOConfig.gradient_accumulation_steps": 4,
        "GRPOConfig.betas": [0.9, 0.95],
        "GRPOConfig.num_generations": 8,
        "GRPOConfig.temperature": 1.0,
        "GRPOConfig.model_init_kwargs.torch_dtype": "torch.bfloat16",
        "GRPOConfig.model_init_kwargs.attn": "fa2",
        "GRPOTrainer.model": "Qwen/Qwen3-8B",
        "AutoModel.pretrained_model_name_or_path": "Qwen/Qwen3-8B",
        "AutoModel.torch_dtype": "auto",
        "LLM.model": "small",
        "LLM.tensor_parallel_size": 2,
    }
    assert found.notes == (
        "run.py:10: GRPOConfig: seed: left out, as only a run would tell",
        "run.py:15: GRPOTrainer: train_dataset: left out, as only a run would tell",
    )


def test_a_value_in_a_script_stands_where_it_is_written() -> None:
    """A value in a script stands where it is written."""
    places = {setting.key: setting.span for setting in read(_SCRIPT).settings}

    def written(key: str) -> str:
        return _SCRIPT.encode()[places[key].start : places[key].end].decode()

    assert written("GRPOConfig.per_device_train_batch_size") == "16"
    assert written("GRPOConfig.gradient_accumulation_steps") == "steps"
    assert written("GRPOConfig.temperature") == "1.0"
    assert places["GRPOConfig.bf16"].line == 11


def test_the_last_assignment_above_counts() -> None:
    """The last assignment above counts."""
    text = "n = 1\nLLM(a=n)\nn = 2\nXConfig(a=n)\nfor n in rows:\n    YConfig(a=n)\ndef f(n=4):\n    ZConfig(a=n)\n"
    assert values(read(text)) == {"LLM.a": 1, "XConfig.a": 2}


def test_defaults_of_a_scripts_own_options_count() -> None:
    """Defaults of a scripts own options count."""
    text = (
        "p = argparse.ArgumentParser()\np.add_argument('-b', '--batch-size', type=int, default=4 * 2)\n"
        "p.add_argument('--name')\nargs = p.parse_args()\nLLM(n=args.batch_size, m=args.name, o=other.batch_size)\n"
    )
    found = read(text)
    assert values(found) == {"argparse.batch-size": 8, "LLM.n": 8}
    assert found.notes == ("run.py:5: LLM: m, o: left out, as only a run would tell",)


def test_nothing_in_a_script_is_run(tmp_path: Any) -> None:
    """Nothing in a script is run."""
    canary = tmp_path / "canary"
    text = f"open({str(canary)!r}, 'w')\nLLM(a=open({str(canary)!r}, 'w'), b=__import__('os').getpid())\n"
    assert not read(text).settings
    assert not canary.exists()


def test_a_script_that_is_no_python_has_a_line() -> None:
    """A script that is no python has a line."""
    with pytest.raises(InputError, match=r"run\.py:2: is not valid Python"):
        read("a = 1\nb = = 2\n")


# Logs

_RESOLVED: dict[str, Any] = {
    "actor_rollout_ref": {
        "actor": {"strategy": "fsdp", "ppo_mini_batch_size": 256, "lr": 1e-06, "betas": [0.9, 0.999], "clip": None},
        "rollout": {"name": "vllm", "n": 5, "engine_kwargs": {}, "text": "it's a long text " * 8, "on": True},
    },
    "trainer": {"nnodes": 2, "logger": ["console", "wandb"], "path": 'a "b"'},
}


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
    return flat


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "\x1b[36m(TaskRunner pid=4321)\x1b[0m ",
        "(TaskRunner pid=12, ip=10.0.0.1) ",
        "2025-11-02 10:11:12,123 INFO main.py:33 - ",
        "[2025-11-02 10:11:12] ",
        "INFO 11-02 10:11:12 ",
        "[rank0]: ",
    ],
)
@pytest.mark.parametrize("printed", ["pprint", "dict", "json", "lines", "yaml"])
def test_a_configuration_that_a_log_prints_is_read(prefix: str, printed: str) -> None:
    """A configuration that a log prints is read."""
    body = {
        "pprint": pprint.pformat(_RESOLVED),
        "dict": f"config: {_RESOLVED}",
        "json": json.dumps(_RESOLVED),
        "lines": json.dumps(_RESOLVED, indent=2),
        "yaml": yaml.safe_dump(_RESOLVED, width=70),
    }[printed]
    body = "starting up (please wait)\nstep:1 - loss:0.5\n" + body + "\nstep {'loss': 0.5, 'a': 1}\n"
    text = "".join(f"{prefix}{line}\n" for line in body.splitlines())
    # Lines of other processes come in between.
    lines = text.splitlines()
    if "pid" in prefix:
        lines[3:3] = ["(vLLM pid=5) {'other': 1, 'more': 2}", "Loading checkpoint"]
    found = read("\n".join(lines), "train.log")
    assert found.form == "log"
    assert values(found) == _flat(_RESOLVED)
    assert all(setting.span.start == setting.span.end for setting in found.settings)
    assert next(setting.span.line for setting in found.settings) >= 3


def test_a_table_of_arguments_is_read() -> None:
    """A table of arguments is read."""
    text = (
        "using world size: 8\n------------------------ arguments ------------------------\n"
        "  tensor_model_parallel_size ............ 4\n  lr .................................... 1e-06\n"
        "  bf16 .................................. True\n  load .................................. None\n"
        "  eval_prompt_data ................................ ['aime', '/x/a.jsonl']\n"
        "  hf_checkpoint ................................... /models/Qwen3-4B\n-------------------- end of arguments\n"
    )
    found = read("".join(f"(MegatronTrainRayActor pid=7) {line}\n" for line in text.splitlines()), "slime.txt")
    assert values(found) == {
        "tensor_model_parallel_size": 4, "lr": 1e-6, "bf16": True, "load": None,
        "eval_prompt_data": ["aime", "/x/a.jsonl"], "hf_checkpoint": "/models/Qwen3-4B",
    }  # fmt: skip
    assert [setting.span.line for setting in found.settings] == [3, 4, 5, 6, 7, 8]


def test_what_objects_show_of_themselves_is_read() -> None:
    """What objects show of themselves is read."""
    text = (
        "args: GRPOConfig(\n_n_gpu=1,\noptim=OptimizerNames.ADAMW,\noutput_dir=/data/out,\nlr=1e-06,\n"
        "sub=Sub(c=[1, (2, 3)], d={'x': PosixPath('/a')}, e=<Kind.ASYNC: 'async'>, f=torch.bfloat16),\n)\n"
    )
    assert values(read(text, "log")) == {
        "GRPOConfig._n_gpu": 1, "GRPOConfig.optim": "OptimizerNames.ADAMW", "GRPOConfig.output_dir": "/data/out",
        "GRPOConfig.lr": 1e-6, "GRPOConfig.sub.c": [1, [2, 3]], "GRPOConfig.sub.d.x": "/a",
        "GRPOConfig.sub.e": "async", "GRPOConfig.sub.f": "torch.bfloat16",
    }  # fmt: skip
    assert values(read("Namespace(a=1, b='x', c=None, d=[])", "-")) == {"a": 1, "b": "x", "c": None, "d": []}


def test_a_text_without_settings_is_refused() -> None:
    """A text without settings is refused."""
    for text in ("", "hello\n", "loss 0.5\n" * 50, "step:1 - a:2 - b:3\n"):
        with pytest.raises(InputError, match="prints no configuration") as caught:
            read(text, "train.log")
        assert "`rlsize diagnose train.log`" in caught.value.faults[0].todo


_WORDS = st.text(alphabet="abc é'\"\\\n{}[](),:=.", max_size=12)
_VALUES = st.recursive(
    st.integers(-(2**60), 2**60)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)


def _by_number(value: object) -> object:
    """Lists that hold mappings as the mappings by number that settings have for them."""
    if isinstance(value, dict):
        return {key: _by_number(inner) for key, inner in value.items()}
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return {str(at): _by_number(item) for at, item in enumerate(value)}
    return value


@given(st.dictionaries(st.sampled_from("efgh"), _VALUES, min_size=4), st.sampled_from([20, 80, 10**6]))
def test_dicts_that_python_prints_read_back(tree: dict[str, Any], width: int) -> None:
    """Dicts that python prints read back."""
    found = read(f"x\n{pprint.pformat(tree, width=width)}\ny", "train.log")
    flat = _by_number(tree)
    assert isinstance(flat, dict)
    assert values(found) == _flat(flat)


# Hostile texts

_HOSTILE = {
    "brackets": "[" * 100_000,
    "braces": '{"a":' * 100_000,
    "parentheses": "(" * 100_000,
    "calls": "A(a=" * 100_000,
    "minus": "a = " + "-" * 100_000 + "1",
    "sum": "a = " + "1+" * 100_000 + "1",
    "dots": "LLM(a=" + "a." * 100_000 + "a)",
    "interpolations": "a: " + "${" * 100_000,
    "long line": "a: " + "x" * 1_000_000,
    "many keys": "".join(f"k{at}: 1\n" for at in range(41_000)),
    "many items": "a: [" + "1," * 50_000 + "]",
    "bomb": "a0: &a0 [x, x]\n" + "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 30)),
    "mapping bomb": "a0: &a0 {x: 1}\n"
    + "".join(f"a{at}: &a{at} {{<<: *a{at - 1}, y{at}: *a{at - 1}, z: *a{at - 1}}}\n" for at in range(1, 30)),
    "own alias": "a: &a [*a]\n",
    "references": "a0: {x: 1}\n"
    + "".join(f"a{at}: {{x: '${{a{at - 1}}}', y: '${{a{at - 1}}}'}}\n" for at in range(1, 38)),
    "doubling": "a0: xxxxxxxx\n" + "".join(f"a{at}: ${{a{at - 1}}}${{a{at - 1}}}\n" for at in range(1, 60)),
    "chain": "a0: 1\n" + "".join(f"a{at}: ${{a{at - 1}}}\n" for at in range(1, 1_000)),
    "backward chain": "".join(f"a{at}: ${{a{at + 1}}}\n" for at in range(1_000)),
    "dotted key": ".".join(["a"] * 100_000) + " = 1",
    "tables": "".join(f"[{'.'.join(['a'] * at)}]\n" for at in range(1, 200)),
    "open strings": "{'a': '" * 10_000,
    "open dicts": "x {'a': 1, \n" * 10_000,
    "open objects": "Ab(a=1, \n" * 10_000,
    "quotes": "'" * 100_000,
    "triple quotes": 'a = """' + '""\\' * 300_000,
    "escapes": 'a = "' + "\\" * 100_001,
    "dashes": "- " * 200_000,
    "blanks": " " * 100_000 + "a",
    "blank lines": "\n" * 300_000,
    "comments": "#" * 300_000,
    "headings": "# a.toml\n" * 100_000,
    "packages": "# \n" * 100_000 + "a: 1",
    "equals": "a=" * 100_000,
    "digits": "a = " + "9" * 1_000_000,
    "nul": "a: \0",
    "surrogate": "a: \ud800",
    "é": "é" * 300_000,
    "power": "LLM(a=9**9**9**9, b='x' * 10**10)",
    "cyclic names": "a = b\nb = a\nLLM(c=b)",
    "doubled names": "a0 = [1, 1]\n"
    + "".join(f"a{at} = [a{at - 1}, a{at - 1}]\n" for at in range(1, 60))
    + "LLM(c=a35)",
    "doubled text": "a0 = 'xxxx'\n"
    + "".join(f"a{at} = f'{{a{at - 1}}}{{a{at - 1}}}'\n" for at in range(1, 35))
    + "LLM(c=a18)",
}  # fmt: skip


_ENDINGS = ("yaml", "toml", "json", "py", "log")


def _pairs() -> Iterator[Any]:
    """Each text under one ending, Python's where it calls something; under all of them where all is tried."""
    for at, (title, text) in enumerate(_HOSTILE.items()):
        own = "py" if "LLM(" in text[-100:] else _ENDINGS[at % len(_ENDINGS)]
        for ending in _ENDINGS if NIGHTLY else (own,):
            yield pytest.param(text, f"x.{ending}", id=f"{title}-{ending}")


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(("text", "name"), tuple(_pairs()))
def test_hostile_texts_end_in_settings_or_a_fault(text: str, name: str) -> None:
    """Hostile texts end in settings or a fault."""
    try:
        found = read(text, name)
    except InputError as error:
        assert len(str(error)) < 500
        assert name in str(error)
    else:
        assert len(found.settings) <= 20_000


@pytest.mark.long
def test_a_bomb_of_aliases_is_refused() -> None:
    """A bomb of aliases is refused."""
    for bomb in ("bomb", "mapping bomb"):
        with pytest.raises(InputError, match="aliases written out"):
            read(_HOSTILE[bomb], "x.yaml")


@pytest.mark.long
def test_too_much_is_refused() -> None:
    """Too much is refused."""
    for text, why in (
        ("a" * (4 * 2**20 + 1), "4 MiB"),
        (_HOSTILE["brackets"], "40 levels"),
        (_HOSTILE["many keys"], "more"),
    ):
        with pytest.raises(InputError, match=why):
            read(text, "x.yaml")


@given(st.text(max_size=200), st.sampled_from(["x.yaml", "x.toml", "x.json", "x.py", "x.log", "-"]))
def test_any_text_is_read_or_refused(text: str, name: str) -> None:
    """Any text is read or refused."""
    try:
        found = read(text, name)
    except InputError:
        return
    size = len(text.encode("utf-8", "surrogatepass"))
    assert all(0 <= one.span.start <= one.span.end <= size for one in found.settings)
