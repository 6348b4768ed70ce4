"""A file of response lengths that was named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import InputError

if TYPE_CHECKING:
    from rlsize.shell.inputs import Inputs


def lengths_of_file(inputs: Inputs) -> tuple[float, ...]:
    """
    Lengths of a file, if one is named; their mean is the loop's where nobody says another.

    Args:
        inputs: What was said; takes faults and notes.
    """
    named, _ = inputs.name("lengths_file")
    if named is None:
        return ()
    from rlsize.readers.lengths import read_lengths

    path = named if inputs.by_flag("lengths_file") or not inputs.file else str(inputs.file.folder / named)
    if inputs.by_flag("response_tokens"):
        inputs.fault("--lengths says the mean already", "--response-tokens", "leave one of them out")
    try:
        values = read_lengths(path)
    except InputError as error:
        inputs.blame(error, path)
        inputs.texts.setdefault("response_tokens", "1")  # so that no second fault is told
        return ()
    mean = sum(values) / len(values)
    if not inputs.gives("response_tokens"):
        inputs.texts["response_tokens"] = f"{mean:.17g}"
    elif not inputs.by_flag("response_tokens"):
        inputs.notes.append(f"The lengths of {path} are drawn from: their mean is {mean:,.0f} tokens.")
    return values
