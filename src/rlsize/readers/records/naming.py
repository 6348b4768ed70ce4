"""Names of models and GPUs as publications write them, and the profiles that they mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.facts.records.base import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.profiles import Catalogue

_LONGEST = 200
_SUFFIX = re.compile(
    r"[-_ ]*(instruct|chat|base|it|hf|preview|thinking|quanti[sz]ed|fp8|fp4|nvfp4|mxfp4|mxfp8|bf16|int4|int8|awq|gptq"
    r"|w8a8|dynamic|dense|moe|\d{4}|v\d\.\d)$"
)
_FAMILIES = (  # the same layers under another name
    (r"^deepseek-v3\.1.*", "deepseek-v3"),
    (r"^deepseek-r1-0528.*", "deepseek-r1"),
    (r"^deepseek-r1-distill-qwen-(\S+)", r"qwen2.5-\1"),
    (r"^deepseek-r1-distill-llama-8b", "llama3.1-8b"),
    (r"^deepseek-r1-distill-llama-70b", "llama3.3-70b"),
    (r"^(qwen2\.5|qwen2|qwen3)-vl-(.+)", r"\1-\2"),
    (r"^(meta-)?llama-?(3(?:\.\d)?)-(.+)", r"llama\2-\3"),
    (r"^glm-4\.5-355b-a32b.*", "glm-4.5"),
    (r"^qwen3\.6-(.+)", r"qwen3.5-\1"),
    (r"^kimi-k2.*", "kimi-k2"),
)
_GPU_WORDS = (
    ("gb300", "gb300"),
    ("gb200", "gb200"),
    ("b300", "b300-sxm"),
    ("b200", "b200-sxm"),
    ("h200", "h200-sxm"),
    ("h100 nvl", "h100-nvl"),
    ("h100 pcie", "h100-pcie"),
    ("h100", "h100-sxm"),
    ("h800", "h800-sxm"),
    ("h20", "h20"),
    ("a100 40", "a100-40-sxm"),
    ("a100", "a100-80-sxm"),
    ("mi355x", "mi355x"),
    ("mi325x", "mi325x"),
    ("mi300x", "mi300x"),
    ("rtx 4090", "rtx-4090"),
    ("rtx 5090", "rtx-5090"),
    ("l40s", "l40s"),
    ("l4", "l4"),
    ("gaudi3", "gaudi3"),
    ("gaudi 3", "gaudi3"),
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*b\b")


def model_named(text: str, catalogue: Catalogue) -> tuple[str, str]:
    """
    The profile of a model, and in words what was taken for granted; nothing where the name is the profile's own.

    Raises:
        Refused: No profile has that name, or one that differs only in how it was tuned or quantised.
    """
    for candidate, note in _candidates(text[:_LONGEST]):
        try:
            return catalogue.get("model", candidate).name, note
        except InputError:
            continue
    raise Refused(f"no profile of the model {text[:60]!r}")


def _candidates(text: str) -> Iterator[tuple[str, str]]:
    name = text.strip().split("/")[-1].lower()
    yield text.strip(), ""
    yield name, ""
    spelt = re.sub(r"\s*\(.*?\)\s*", "", name).strip().replace("_", "-").replace(" ", "-")
    yield spelt, ""
    seen = {spelt}
    while spelt:
        yield from _families(spelt, text)
        shorter = _SUFFIX.sub("", spelt)
        if shorter in seen:
            return
        seen.add(shorter)
        spelt = shorter
        yield spelt, ""


def _families(spelt: str, text: str) -> Iterator[tuple[str, str]]:
    for pattern, replacement in _FAMILIES:
        if re.match(pattern, spelt):
            found = re.sub(pattern, replacement, spelt)
            own = found.replace("-", "") == spelt.replace("-", "")
            yield found, "" if own else f"{text.strip()} has the layers of {found}"


def gpu_named(text: str, catalogue: Catalogue) -> tuple[str, str]:
    """
    The profile of a GPU, and in words what was taken for granted.

    Raises:
        Refused: No profile is that GPU.
    """
    try:
        return catalogue.get("gpu", text.strip()).name, ""
    except InputError:
        spelt = re.sub(r"[^a-z0-9]+", " ", text.lower())
        for word, name in _GPU_WORDS:
            if re.search(rf"\b{word}", spelt) and name in catalogue.names("gpu"):
                return name, "" if spelt.startswith(word) else f"{text.strip()} taken for {name}"
    raise Refused(f"no profile of the GPU {text[:60]!r}")


def stated_billions(text: str) -> float | None:
    """Parameters that a text states, in billions: 30 of "~30B MoE"; None where it states none."""
    found = _SIZE.search(text.lower())
    return float(found.group(1)) if found else None


def stand_in(text: str, catalogue: Catalogue) -> tuple[str, float, str]:
    """
    A profile for a model that is known by its size and kind only.

    Returns:
        The shipped model of that kind with the nearest size, the parameters that the text states, and what that takes
        for granted.

    Raises:
        Refused: The text states no size.
    """
    billions = stated_billions(text)
    if not billions:
        raise Refused(f"the model {text[:60]!r} is no profile and states no size")
    sparse = bool(re.search(r"moe|-a\d", text.lower()))
    best = ("", 0.0)
    for name in catalogue.names("model"):
        model = catalogue.get("model", name)
        if model.computed is None or bool(model.architecture.moe) != sparse:
            continue
        if not best[0] or abs(model.computed.params / 1e9 - billions) < abs(best[1] - billions):
            best = (name, model.computed.params / 1e9)
    if not best[0]:
        raise Refused(f"no shipped model resembles {text[:60]!r}")
    kind = "mixture of experts" if sparse else "dense model"
    return best[0], billions * 1e9, f"a {kind} of {billions:g}B parameters, in tensors as {best[0]}"
