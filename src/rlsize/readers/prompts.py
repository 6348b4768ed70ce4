"""Prompts and traces of turns to play again: one JSON object a line, by text, token ids, or lengths alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import Fault, InputError, refuse
from rlsize.readers.yaml_documents import read_text

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 64 * 2**20
MOST_LINES = 20_000
_MOST_TOKENS = 10_000_000
_SHOWN = 20  # faults that are told
_KEYS = ("prompt", "prompt_token_ids", "prompt_tokens")
_FORMS = f"write a JSON object with one of {', '.join(_KEYS)}, messages and turns"


class SaidTurn(NamedTuple):
    """
    What a line says of a turn; what it does not say is None.

    Args:
        prompt: What comes before the response: text, token ids, or their number.
        response: Its response: text, or the number of its tokens.
    """

    prompt: str | list[int] | int
    response: str | int | None = None


def read_prompts(path: str | Path) -> list[list[SaidTurn]]:
    """
    The turns of each line.

    Raises:
        InputError: The file cannot be read, is too large or empty, or lines are none; all of them at once.
    """
    lines = [line for line in enumerate(read_text(path, MOST_BYTES).splitlines(), start=1) if line[1].strip()]
    if not 0 < len(lines) <= MOST_LINES:
        what = f"has {len(lines):,} lines, more than {MOST_LINES:,}" if lines else "is empty"
        raise InputError(Fault(what, str(path), "give a line for each prompt of a step"))
    found, faults = [], []
    for number, line in lines:
        try:
            found.append(_turns(json.loads(line)))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            why = error if type(error) is ValueError else "is no prompt"
            faults.append(Fault(f"{line.strip()[:60]!r} {why}", f"{path}, line {number}", _FORMS))
    refuse(faults[:_SHOWN])
    return found


def _turns(said: str | dict[str, Any]) -> list[SaidTurn]:
    """
    The turns of a line.

    Raises:
        ValueError: It has none, or one is out of range.
    """
    if isinstance(said, str):
        return [SaidTurn(said)]
    if "messages" in said:
        return _messages(said["messages"])
    turns = [_turn(one) for one in said["turns"]] if "turns" in said else [_turn(said)]
    if not turns:
        raise ValueError("has no turn")
    return turns


def _turn(said: dict[str, Any]) -> SaidTurn:
    named = [key for key in _KEYS if key in said]
    if len(named) != 1:
        raise ValueError(f"names {len(named)} prompts")
    prompt = said[named[0]]
    response = said.get("response_tokens", said.get("response"))
    if isinstance(prompt, list):
        prompt = [_count(one, 0) for one in prompt]
    elif not isinstance(prompt, str):
        prompt = _count(prompt, 1)
    if not prompt:
        raise ValueError("has an empty prompt")
    return SaidTurn(prompt, response if response is None or isinstance(response, str) else _count(response, 1))


def _messages(said: list[Any]) -> list[SaidTurn]:
    """A turn for each message of the assistant, and one more where the last is somebody else's."""
    found, before = [], ""
    for one in said:
        content = one["content"] or ""
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        if one["role"] != "assistant":
            before += f"{text}\n"
        elif before:
            found.append(SaidTurn(before, text or None))
            before = ""
    if before:
        found.append(SaidTurn(before))
    if not found:
        raise ValueError("has no message before the assistant's")
    return found


def _count(said: object, least: int) -> int:
    if isinstance(said, bool) or not isinstance(said, int) or not least <= said <= _MOST_TOKENS:
        raise ValueError(f"has {str(said)[:20]}, which is no number of tokens from {least} to {_MOST_TOKENS:,}")
    return said
