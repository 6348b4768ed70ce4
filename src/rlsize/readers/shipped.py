"""What rlsize comes with beside its code: folders inside an installed package, else those of the checkout."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = "examples"


def shipped(folder: str) -> Path:
    """A folder that rlsize comes with: profiles, or examples."""
    package = Path(__file__).parents[1]
    return package / folder if (package / folder).is_dir() else package.parents[1] / folder


def with_examples(arguments: list[str]) -> tuple[list[str], list[str]]:
    """
    Arguments with the shipped examples in place of files that they name and that are not there; and those names.

    Args:
        arguments: As they were typed. A folder `examples` of the user's own goes before the shipped one.
    """
    if Path(EXAMPLES).exists():
        return arguments, []
    made, taken = [], []
    for text in arguments:
        flag, equals, value = text.rpartition("=") if text.startswith("--") else ("", "", text)
        path = shipped(EXAMPLES) / value.removeprefix(f"{EXAMPLES}/")
        if value.startswith(f"{EXAMPLES}/") and path.exists():
            taken.append(value)
            value = str(path)
        made.append(f"{flag}{equals}{value}")
    return made, taken
