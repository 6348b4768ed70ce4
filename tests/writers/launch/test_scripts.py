"""A script is written back with only what changes, where it stands; reading it again gives exactly the change."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import DoesNotFitError
from rlsize.frameworks.told import Reading
from rlsize.readers.frameworks import frameworks
from rlsize.readers.launch.launch import read_launch
from rlsize.readers.profiles import Catalogue
from rlsize.writers.launch.written_back import Written, masked, written_back

MAIN = "python3 -m verl.trainer.main_ppo"
ROLL = "actor_rollout_ref.rollout"
ACTOR = "actor_rollout_ref.actor"


@cache
def known() -> Any:
    """All frameworks."""
    return frameworks(Catalogue())


def reader(name: str = "train.sh") -> Callable[[str], Reading]:
    """Reads a text as the file of that name."""
    return lambda text: read_launch(name, known(), text=text.removeprefix("\ufeff")).reading


def back(text: str, **wanted: Any) -> Written:
    """A script with quantities written into it."""
    again = reader()
    return written_back(text.encode(), "train.sh", again(text), wanted, again)


def changed(text: str, **wanted: Any) -> tuple[list[str], list[str]]:
    """Lines that go and lines that come."""
    lines = back(text, **wanted).difference.splitlines()[2:]
    gone, come = ([line[1:] for line in lines if line.startswith(sign)] for sign in "-+")
    return gone, come


@pytest.mark.parametrize(
    ("line", "wanted", "after"),
    [
        (f"{ROLL}.n=8", {"group_size": 16}, f"{ROLL}.n=16"),
        (f'{ROLL}.n="8"', {"group_size": 16}, f'{ROLL}.n="16"'),
        (f"'{ROLL}.n=8'", {"group_size": 16}, f"'{ROLL}.n=16'"),
        (f'"{ROLL}.n=${{N:-8}}"', {"group_size": 16}, f'"{ROLL}.n=16"'),
        ("$R.n=$((2 * G))", {"group_size": 16}, "$R.n=16"),
        (f"+{ROLL}.n=$G", {"group_size": 16}, f"+{ROLL}.n=16"),
        (f"{ROLL}.gpu_memory_utilization=.5", {"memory_fraction": 0.35}, f"{ROLL}.gpu_memory_utilization=0.35"),
        (
            f"{ACTOR}.fsdp_config.param_offload=False",
            {"offload_params": True},
            f"{ACTOR}.fsdp_config.param_offload=True",
        ),
        (
            f"{ACTOR}.fsdp_config.param_offload=false",
            {"offload_params": True},
            f"{ACTOR}.fsdp_config.param_offload=true",
        ),
    ],
)
def test_a_value_is_replaced_in_the_way_it_was_written(line: str, wanted: dict[str, Any], after: str) -> None:
    """Quotes, signs before the key and the key itself stay; a variable becomes the number."""
    text = f"G=4\nR={ROLL}\n{MAIN} \\\n  data.train_batch_size=512 \\\n  {line}  # why\n"
    assert back(text, **wanted).content.decode() == text.replace(line, after)


def test_a_variable_keeps_its_value_for_its_other_uses_which_are_named() -> None:
    """Only the key that was asked for changes."""
    text = f"T=8192\n{MAIN} data.max_prompt_length=$T \\\n data.max_response_length=$T\n"
    written = back(text, max_response_tokens=16384)
    assert written.content.decode() == text.replace("response_length=$T", "response_length=16384")
    assert "$T keeps its value for its other uses: line 2." in written.notes


def test_a_new_key_stands_behind_its_nearest_kin() -> None:
    """In a continued command, in an array on lines of its own with a comment, in an array in one line."""
    assert changed(f"{MAIN} \\\n  {ROLL}.name=vllm \\\n  data.train_batch_size=512\n", group_size=16) == (
        [],
        [f"  {ROLL}.n=16 \\"],
    )
    assert changed(f"{MAIN} \\\n  trainer.nnodes=1 \\\n\t{ROLL}.name=vllm\n", group_size=16) == (
        [f"\t{ROLL}.name=vllm"],
        [f"\t{ROLL}.name=vllm \\", f"\t{ROLL}.n=16"],
    )
    array = f'A=(\n  {ROLL}.name=vllm # engine\n  data.train_batch_size=512\n)\n{MAIN} "${{A[@]}}"\n'
    assert changed(array, group_size=16) == ([], [f"  {ROLL}.n=16"])
    row = f'A=({ROLL}.name=vllm)\n{MAIN} "${{A[@]}}" "$@"\n'
    assert changed(row, group_size=16)[1] == [f"A=({ROLL}.name=vllm {ROLL}.n=16)"]


def test_prime_rl_devices_follow_the_gpus_and_what_is_new_stands_behind_a_file_as_a_flag() -> None:
    """Engines have the first ones, as lists of the form that there is; flags are spelled as the others are."""
    lines = "uv run rl --trainer @ t.toml --orchestrator @ o.toml \\\n --trainer-gpu-ids 6,7 --inference-gpu-ids {}\n"
    _, come = changed(lines.format("0,1,2,3,4,5"), trainer_gpus=4, rollout_gpus=3, group_size=8)
    assert come[-1] == " --trainer-gpu-ids 3,4,5,6 --inference-gpu-ids 0,1,2"
    assert any("--orchestrator @ o.toml --orchestrator.group-size 8" in line for line in come)
    text = "trainer_gpu_ids = [0, 1]\ninference_gpu_ids = [2, 3]\n[orchestrator]\nbatch_size = 64\n"
    again = reader("rl.toml")
    written = written_back(text.encode(), "rl.toml", again(text), {"trainer_gpus": 1}, again).content.decode()
    assert written.startswith("trainer_gpu_ids = [2]\ninference_gpu_ids = [0, 1]\n")  # both, so that none is in two


def test_what_cannot_be_changed_where_it_stands_is_overridden_behind_it() -> None:
    """Words of one expansion, of braces and of a loop share their place; the last one counts."""
    braces = f"{MAIN} {ACTOR}.fsdp_config.{{param,optimizer}}_offload=False \\\n  trainer.nnodes=1\n"
    written = back(braces, offload_params=True)
    told = reader()(written.content.decode())
    assert "{param,optimizer}_offload=False" in written.content.decode()
    assert (told.value(f"{ACTOR}.fsdp_config.param_offload"), told.value(f"{ACTOR}.fsdp_config.optimizer_offload")) == (
        True,
        False,
    )
    words = f'O="trainer.nnodes=1 {ROLL}.n=4"\n{MAIN} $O\n'
    assert back(words, group_size=8).content.decode() == words.replace("$O\n", f"$O \\\n  {ROLL}.n=8\n")


def test_what_is_around_the_program_follows_where_it_was_in_step() -> None:
    """Lines of the batch system change with the nodes; one that said something else is named."""
    text = f"#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:h100:8\n{MAIN} trainer.nnodes=2 {ROLL}.n=8\n"
    written = back(text, gpus=32)
    assert written.content.decode() == text.replace("nodes=2", "nodes=4")
    odd = text.replace("--nodes=2", "--nodes=3")
    written = back(odd, gpus=32)
    assert "--nodes=3" in written.content.decode()
    assert any("train.sh:2: batch.nodes is 3" in note for note in written.notes)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("python3 train.py --actor-num-nodes 1 --colocate --rollout-num-gpus-per-engine 2\n", "nodes 1 --rollout-num"),
        (
            "python3 train.py \\\n  --actor-num-nodes 1 \\\n  --colocate \\\n  --rollout-num-gpus-per-engine 2\n",
            "nodes 1 \\\n  --r",
        ),
        ("python3 train.py \\\n  --actor-num-nodes 1 \\\n  --colocate\necho done\n", "rollout-num-gpus 8\necho done\n"),
    ],
)
def test_a_switch_that_is_to_be_off_goes_with_its_line(text: str, after: str) -> None:
    """In a line with others, in lines of its own, as the last one of a command."""
    written = back(text, mode="sync", rollout_gpus=8).content.decode()
    assert "--colocate" not in written
    assert after in written


def test_a_switch_whose_default_is_on_is_switched_off_by_a_word() -> None:
    """Where it is only taken away, the framework's default would switch it on again."""
    text = "accelerate launch grpo.py --num_generations 8 --use_vllm --gradient_checkpointing --beta 0.0\n"
    written = back(text, recompute="none").content.decode()
    assert written == text.replace("--gradient_checkpointing", "--gradient_checkpointing false")


def test_what_goes_with_a_key_goes_with_it_and_the_others_of_its_line_stay() -> None:
    """How to recompute, where nothing is; sequence parallelism without tensor parallelism."""
    text = (
        "P=(\n   --tensor-model-parallel-size 2 --sequence-parallel\n"
        "   --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --lr 1e-6\n)\n"
        "python3 train.py --colocate --actor-num-nodes 1 --rollout-num-gpus-per-engine 2 ${P[@]}\n"
    )
    after = "P=(\n   --tensor-model-parallel-size 1\n   --lr 1e-6\n)\n"
    written = back(text, recompute="none", tensor_parallel=1).content.decode()
    assert written == after + text.partition(")\n")[2]


def test_a_command_that_a_variable_hands_to_a_batch_script_is_changed_inside_its_quotes() -> None:
    """`COMMAND="..." sbatch ray.sub`: values where they stand, new keys behind their kin, before the quote ends."""
    text = (
        'COMMAND="uv run examples/run_grpo.py --config x.yaml grpo.num_prompts_per_step=32 cluster.num_nodes=2" \\\n'
        "CONTAINER=image sbatch --nodes=2 --gres=gpu:8 ray.sub\n"
    )
    written = back(text, prompts_per_step=64, group_size=8).content.decode()
    new = "grpo.num_prompts_per_step=64 grpo.num_generations_per_prompt=8 cluster"
    assert written == text.replace("grpo.num_prompts_per_step=32 cluster", new)


def test_a_new_key_may_stand_where_its_kin_goes() -> None:
    """What goes is taken away after what comes has found its place."""
    text = "python3 train.py --colocate --actor-num-nodes 1 \\\n  --use-dynamic-batch-size --max-tokens-per-gpu 9216\n"
    written = back(text, micro_batch_samples=2, micro_batch_tokens=None).content.decode()
    assert "--micro-batch-size 2" in written
    assert "--use-dynamic-batch-size" not in written


def test_sourced_files_are_never_edited(tmp_path: Path) -> None:
    """An override goes into the script."""
    (tmp_path / "keys.sh").write_text(f"ARGS=({ROLL}.n=4 {ROLL}.name=vllm)\n", encoding="utf-8")
    script = tmp_path / "train.sh"
    script.write_text(f'. ./keys.sh\n{MAIN} "${{ARGS[@]}}" trainer.nnodes=1\n', encoding="utf-8")
    launch = read_launch(str(script), known())

    def again(text: str) -> Reading:
        return read_launch(str(script), known(), text=text).reading

    written = written_back(script.read_bytes(), str(script), launch.reading, {"group_size": 8}, again)
    assert written.content.decode().endswith(f"trainer.nnodes=1 {ROLL}.n=8\n")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_endings_and_byte_order_mark_stay(ending: str, mark: str) -> None:
    """And a last line without an end."""
    text = mark + f"{MAIN} \\{ending}  {ROLL}.name=vllm \\{ending}  trainer.nnodes=1"
    written = back(text, group_size=8).content.decode()
    assert written == text.replace(f"vllm \\{ending}", f"vllm \\{ending}  {ROLL}.n=8 \\{ending}")


def test_what_a_framework_cannot_be_told_is_refused_by_name() -> None:
    """Its program decides the mode; and no file is written."""
    with pytest.raises(DoesNotFitError, match="mode = async: its keys say colocated"):
        back(f"{MAIN} trainer.nnodes=1 {ROLL}.n=8\n", mode="async")


def test_a_command_in_a_variable_is_gone_on_with_as_it_is_written() -> None:
    """Overrides stay overrides, though a flag names the configuration."""
    text = f'COMMAND="{MAIN} --config-name=x {ROLL}.n=8 trainer.nnodes=1"\nsrun bash -c "$COMMAND"\n'
    assert f"{ROLL}.n=16".encode() in back(text, group_size=16).content


def test_the_difference_repeats_no_secret() -> None:
    """The file keeps it; names and values that only resemble one are shown."""
    text = f"export WANDB_API_KEY=abcdef123456\n{MAIN} {ROLL}.n=8 data.prompt_key=prompt trainer.token=s3cretvalue\n"
    written = back(text, group_size=16)
    assert b"abcdef123456" in written.content
    assert "abcdef" not in written.difference
    assert "s3cret" not in written.difference
    assert "data.prompt_key=prompt" in written.difference


@pytest.mark.parametrize(
    "text",
    [
        "-H 'Authorization: Bearer s3cretvalue'",
        "- {name: WANDB_API_KEY, value: s3cretvalue}",
        "- name: MY_TOKEN\n  value: 's3cretvalue'",
        '{"name": "DB_PASSWORD", "value": "s3cretvalue"}',
        "MY_CREDS=s3cretvalue",
        "x: czNjcmV0dmFsdWVpc2hlcmU9PQ==",
        "--api-key s3cretvalue",
        "http://me:s3cretvalue@proxy:80",
        "export X=sk-s3cretvalue123 Y=ghp_s3cretvalue123",
    ],
)
def test_secrets_are_masked_in_the_forms_that_people_write(text: str) -> None:
    """In headers, in variables of containers, in addresses, and encoded."""
    assert "s3cret" not in masked(text)
    assert "czNjcmV0" not in masked(text)


def test_what_only_resembles_a_secret_is_shown() -> None:
    """Keys, paths and prompts."""
    text = 'data.prompt_key=prompt PYTHONDONTWRITEBYTECODE="1" max_tokens=4096 tokenizer=a/b'
    assert masked(text) == text


VALUES = {
    f"{ROLL}.n": ("group_size", st.integers(2, 64)),
    "data.train_batch_size": ("prompts_per_step", st.integers(1, 4096)),
    f"{ROLL}.gpu_memory_utilization": ("memory_fraction", st.sampled_from([0.3, 0.45, 0.9])),
    f"{ACTOR}.fsdp_config.param_offload": ("offload_params", st.booleans()),
    "data.max_response_length": ("max_response_tokens", st.integers(1, 10**6)),
}
STYLES = ("{}={}", "'{}={}'", '"{}={}"', '{}="{}"', "+{}={}")


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_read_change_write_read_gives_exactly_the_change(data: st.DataObject) -> None:
    """Whatever the style of a script: its other lines stay, and no other key is set otherwise."""
    chosen = data.draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True))
    words = [
        data.draw(st.sampled_from(STYLES)).format(key, data.draw(VALUES[key][1]) if key in VALUES else "x")
        for key in [*chosen, "trainer.project_name"]
    ]
    separator = data.draw(st.sampled_from([" ", " \\\n  ", "\n  "]))
    array = separator == "\n  " or data.draw(st.booleans())
    joined = separator.replace(" \\\n", "\n") if array else separator
    text = f"A=({joined.join(words)})\n{MAIN} ${{A[@]}}\n" if array else f"{MAIN}{joined}{joined.join(words)}\n"
    wanted = {VALUES[key][0]: data.draw(VALUES[key][1]) for key in data.draw(st.sets(st.sampled_from(sorted(VALUES))))}
    before = reader()(text)
    written = back(text, **wanted)
    after = reader()(written.content.decode())
    assert {name: after.value(f"loop.{name}") for name in wanted} == wanted
    keys = {key for key, (name, _) in VALUES.items() if name in wanted}
    for key in {*before.settings, *after.settings} - keys:
        assert after.value(key) == before.value(key)
    if not wanted:
        assert (written.content.decode(), written.difference) == (text, "")
