"""Prompts and traces to play: every form that a line may have, and each line that has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlsize.errors import InputError
from rlsize.readers import prompts
from rlsize.readers.prompts import SaidTurn, read_prompts

CHAT = (
    '{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "U"}]},'
    ' {"role": "assistant", "content": "A"}, {"role": "tool", "content": "T"}]}'
)


@pytest.mark.parametrize(
    ("line", "turns"),
    [
        ('"hello"', [SaidTurn("hello")]),
        ('{"prompt": "hello", "response_tokens": 7}', [SaidTurn("hello", 7)]),
        ('{"prompt_token_ids": [1, 2], "response": "yes"}', [SaidTurn([1, 2], "yes")]),
        ('{"turns": [{"prompt_tokens": 9}, {"prompt": [4], "response_tokens": 2}]}', [SaidTurn(9), SaidTurn([4], 2)]),
        (CHAT, [SaidTurn("S\nU\n", "A"), SaidTurn("T\n")]),
    ],
)
def test_a_line_tells_its_turns(line: str, turns: list[SaidTurn], tmp_path: Path) -> None:
    """What it does not say of responses is left open."""
    path = tmp_path / "prompts.jsonl"
    path.write_text(f"{line}\n\n{line}\n", encoding="utf-8")
    assert read_prompts(path) == [turns, turns]


BAD = (
    "[", "7", "null", "{}", '{"prompt": ""}', '{"prompt": "a", "prompt_tokens": 3}', '{"prompt_tokens": 0}',
    '{"prompt_token_ids": [-1]}', '{"prompt_token_ids": [true]}', '{"prompt": "a", "response_tokens": 1e9}',
    '{"turns": []}', '{"turns": 3}', '{"messages": [{"role": "assistant", "content": "a"}]}', '{"messages": ["a"]}',
)  # fmt: skip


def test_every_line_that_is_none_is_told_at_once(tmp_path: Path) -> None:
    """With its number; a file without lines, and one with too many, are refused too."""
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(BAD), encoding="utf-8")
    with pytest.raises(InputError) as told:
        read_prompts(path)
    assert [fault.where for fault in told.value.faults] == [f"{path}, line {n}" for n in range(1, len(BAD) + 1)]
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="is empty"):
        read_prompts(path)


def test_too_many_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any is read."""
    monkeypatch.setattr(prompts, "MOST_LINES", 2)
    path = tmp_path / "prompts.jsonl"
    path.write_text("[\n" * 3, encoding="utf-8")
    with pytest.raises(InputError, match="has 3 lines, more than 2"):
        read_prompts(path)
