"""
Names of models and GPUs as publications, scripts and people write them, as names of profiles.

Spelling is forgiven: case, the owner, endings that say how weights were tuned, rounded or dated. Beyond that a name is
matched by family and size, or by size alone, and then a note says what was taken for what.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rlsize.errors import InputError, Refused, nearest
from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.model import Model
    from rlsize.readers.profiles import Catalogue

_LONGEST = 120
_LARGEST_GAP = 0.2  # of the logarithm of a size; further away is another model
_FARTHEST = 2.3  # the same, of one that is scaled: ten times
_LARGEST_DENSE = 450e9  # parameters; larger models have experts
_MEMORY_ROUNDING = 0.1  # B200 are sold as 180 and 192 GB
_SEPARATORS = re.compile(r"[\s_\-/:,;()\[\]~+]+")
_MOE_SHORT = re.compile(r"(\d)b(\d{1,3})a\b")  # Qwen3-30B3A
_POINT = re.compile(r"(qwen2(?=[-_]?5)|llama[-_]?3(?=[-_]?[1-3]))[-_]?(\d)(?=[-_])")  # qwen25_7b, llama3_1_8b
_SIZE = re.compile(r"(?:\d{1,3}x)?\d{1,4}(?:\.\d{1,3})?[bt]")
_ACTIVE = re.compile(r"a(\d{1,3}(?:\.\d{1,3})?)b")
_BRACKETS = re.compile(r"\([^)]{0,80}\)")
_FAMILY = re.compile(r"([a-z]+)([\d.]*)")  # with its generation
_TOWERS = frozenset({"vl", "omni", "vision"})
_KINDS = frozenset({"next", "hybrid", "linear", "mamba"})  # of layers, which no size tells
_NUMBER = re.compile(r"\d(?:\.\d)?")
_GENERATION = re.compile(r"(?<![\d.])\d{1,2}(?:\.\d)?(?![\d.]|[bt](?![a-z]))")
_DATE = re.compile(r"\d{4}")
_MEMORY = re.compile(r"(\d{2,3})\s?(?:gb?|gib)(?![a-z0-9])")
_FORMS = re.compile(r"\d{1,3}(?:gb?|gib)?|gib?|gb|hbm\d?e?|sxm\d?|pcie|nvl|node|server")  # what may follow a GPU's name
_COUNT = re.compile(r"^\d{1,5}\s?[x*]\s?(?=[a-z])")  # 8x H100
_TUNED = frozenset({
    "instruct", "base", "chat", "it", "pt", "hf", "fp8", "bf16", "fp16", "fp4", "nvfp4", "mxfp4", "mxfp8", "awq",
    "gptq", "int4", "int8", "w4a16", "w8a8", "w4afp8", "quantised", "quantized", "dynamic", "thinking", "think",
    "reasoning", "preview", "sft", "dpo", "rlhf", "rl", "zero", "moe", "model", "block", "blockwise", "weights",
})  # fmt: skip
_SIZE_WORDS = frozenset({
    "class", "model", "models", "moe", "dense", "llm", "about", "published", "as", "parameters", "params", "size", "a",
})  # fmt: skip
_BASES = ("qwen2.5", "qwen3", "llama3.1")  # dense models that most RL runs begin with
_MAKERS = ("nvidia", "amd", "intel", "google", "instinct", "tesla", "geforce", "gpu", "dgx", "hgx", "accelerator")


def model_named(text: object, catalogue: Catalogue) -> tuple[str, str]:
    """
    The profile of the model that a publication names, and what was assumed to find it; empty for a mere spelling.

    Raises:
        Refused: There is none.
    """
    said = _clean(text, "model")
    table = _spellings(catalogue, "model")
    tokens = _tokens(said)
    for words in _shorter(said, tokens):
        if (found := table.get("".join(words))) is not None:
            return found, ""
    without = [word for word in _plain(tokens) if word not in _TOWERS]
    if (found := table.get("".join(without))) is not None:
        return found, f"{said} is taken for {found}, without its vision tower"
    named = _tokens(said.rstrip("/").rpartition("/")[2])  # an owner says no generation
    family = _same_family([word for word in _plain(named) if word not in _TOWERS], catalogue)
    alike = family or _same_size(tokens, catalogue)
    if alike and not (family and _of_another_kind(named, family, catalogue)):
        return alike, f"{said} is taken for {alike}, which has its size"
    own = [word for word in _plain(named) if word not in _MAKERS] or tokens
    like, sizes = _of_its_kind(own, tokens, catalogue)
    if like and not _of_another_kind(named, like, catalogue):
        return (
            f"{like}@{sizes}",
            f"{said} is taken for {like} scaled to its parameters, as nobody has read its dimensions",
        )
    raise Refused(_missing("model", said, catalogue.known("model")))


def model_of_size(text: str, catalogue: Catalogue) -> str:
    """
    A model scaled to the parameters that a name says (`acme-13b-v2`), of those that most runs begin with; empty where
    it says none, or a generation or a kind of layers of a family that is known: that one may be built otherwise.

    Its dimensions are a guess, which whoever takes it must tell.
    """
    tokens = _tokens(text)
    sized = [word for word in tokens if word in _sizes(tokens)]
    family = next((word for word in tokens if _family(word) in _families(catalogue)), "")
    told = {word for word in tokens if _NUMBER.fullmatch(word)} | (_KINDS & set(tokens))
    if text.endswith((".json", ".yaml", ".yml")) or (family and (told or family != _family(family))):
        return ""
    like, sizes = _of_its_kind([], sized, catalogue)
    return f"{like}@{sizes}" if like else ""


def gpu_named(text: object, catalogue: Catalogue) -> tuple[str, str]:
    """
    The profile of the GPU that a publication names, and what was assumed to find it; empty for a mere spelling.

    Raises:
        Refused: There is none.
    """
    said = _clean(text, "GPU")
    table = _spellings(catalogue, "gpu")
    whole = _COUNT.sub("", said.lower())
    tokens = [word for word in _tokens(_BRACKETS.sub(" ", whole)) if word not in _MAKERS]
    for length in range(len(tokens), 0, -1):
        found = table.get("".join(tokens[:length]))
        if found is None:
            continue
        if length == len(tokens):
            return found, ""
        name, note = _variant(found, tokens[length:], whole, catalogue)
        strange = [word for word in tokens[length:] if not _FORMS.fullmatch(word)]
        return name, note or (f"{said} is taken for {name}" if strange else "")
    raise Refused(_missing("GPU", said, catalogue.known("gpu")))


def _variant(name: str, rest: list[str], said: str, catalogue: Catalogue) -> tuple[str, str]:
    """The GPU of that family with the memory and the form that the rest of the name says."""
    family = name.partition("-")[0]
    others = [each for each in catalogue.names("gpu") if each.partition("-")[0] == family]
    for form in ("pcie", "nvl"):
        if form in rest and form not in name:
            meant = [each for each in others if each.endswith(form)]
            return (meant[0], "") if meant else (name, f"the {form.upper()} card is taken for {name}")
    memory = _MEMORY.search(said)
    if memory is None:
        return name, ""
    wanted = float(memory.group(1))
    sizes = {each: catalogue.get("gpu", each).specification.memory.value / 1e9 for each in (name, *others)}
    best = min(sizes, key=lambda each: abs(math.log(sizes[each] / wanted)))
    if abs(math.log(sizes[best] / wanted)) > _MEMORY_ROUNDING:
        return name, f"a {wanted:g} GB card is taken for {name} of {sizes[name]:g} GB"
    return (name if abs(math.log(sizes[name] / wanted)) <= _MEMORY_ROUNDING else best), ""


@lru_cache(maxsize=16)
def _spellings(catalogue: Catalogue, kind: str) -> Mapping[str, str]:
    """The profile behind each name and alias, without separators; and, for models, without what is said of tuning."""
    known = catalogue.known(kind)
    exact = {"".join(_tokens(each)): name for each, name in known.items()}
    if kind != "model":
        return exact
    bare = {"".join(_plain(_tokens(each.rpartition("/")[2]))): name for each, name in known.items()}
    return bare | exact


def _clean(text: object, kind: str) -> str:
    found = printable(text.strip())[:_LONGEST] if isinstance(text, str) else ""
    if not found:
        raise Refused(f"names no {kind}")
    return found


def _tokens(text: str) -> list[str]:
    lowered = _POINT.sub(r"\1.\2", _MOE_SHORT.sub(r"\1b-a\2b", text.lower()))
    return [word for word in _SEPARATORS.split(lowered) if word]


def _plain(tokens: list[str]) -> list[str]:
    """Without the words that say how the weights were tuned, rounded or dated; the first word stays."""
    return tokens[:1] + [word for word in tokens[1:] if word not in _TUNED and not _DATE.fullmatch(word)]


def _shorter(said: str, tokens: list[str]) -> Iterator[list[str]]:
    """The name as it stands, without owner or path and remarks in brackets, and without what is said of tuning."""
    yield tokens
    for whole in (said, said.rstrip("/").rpartition("/")[2]):
        part = _tokens(_BRACKETS.sub(" ", whole))
        yield part
        yield _plain(part)
    sized = [at for at, word in enumerate(part) if _SIZE.fullmatch(word) or _ACTIVE.fullmatch(word)]
    yield part[: sized[-1] + 1] if sized else part  # what follows says how the weights were tuned


def _sizes(tokens: list[str]) -> set[str]:
    return {word for word in tokens if _SIZE.fullmatch(word) or _ACTIVE.fullmatch(word)}


def _same_family(tokens: list[str], catalogue: Catalogue) -> str:
    """
    A profile of the name's family that says the same sizes; empty where there is none.

    Of its generation where the name says one: the next may be of another kind.
    """
    sizes = _sizes(tokens)
    for at, word in enumerate(tokens):
        letters = _FAMILY.match(word)
        if letters is None or word in sizes:
            continue
        apart = next((one for one in tokens[at + 1 : at + 2] if _NUMBER.fullmatch(one)), "")  # of Llama-4
        fitting = [
            name
            for name in catalogue.names("model")
            if (theirs := _FAMILY.match(name))
            and theirs[1] == letters[1]
            and (letters[2] or apart) in {"", theirs[2]}
            and sizes <= _sizes(_tokens(name))
        ]
        if sizes and fitting:
            return next(iter(nearest("-".join(tokens), fitting, most=1) or fitting))
    return ""


def _family(word: str) -> str:
    """The letters that a word begins with: of `qwen3.5` those of its family."""
    letters = _FAMILY.match(word)
    return letters[1] if letters else ""


@lru_cache(maxsize=16)
def _families(catalogue: Catalogue) -> frozenset[str]:
    """The families of all profiles, but for letters that stand for more (R1)."""
    return frozenset(family for name in catalogue.names("model") if len(family := _family(name)) > 1)


def _of_another_kind(tokens: list[str], name: str, catalogue: Catalogue) -> bool:
    """Whether a name says a generation, or a kind of layers, that no name of a profile does."""
    theirs = {word for each, own in catalogue.known("model").items() if own == name for word in _tokens(each)}
    generations = {number.partition(".")[0] for word in theirs for number in _GENERATION.findall(word)}
    sizes = _sizes(tokens)
    before = tokens[: next((at for at, word in enumerate(tokens) if word in sizes), len(tokens))]  # the rest is a run's
    said = {word.partition(".")[0] for word in before if _NUMBER.fullmatch(word)}
    return bool(said - generations) or bool((_KINDS & set(before)) - theirs)


def _same_size(tokens: list[str], catalogue: Catalogue) -> str:
    """
    The profile of nearest size, where a text says nothing but sizes; empty where it says more or none is near.

    One that is named by the same size goes first.
    """
    sizes = [word for word in tokens if _SIZE.fullmatch(word) and "x" not in word]
    if not sizes or any(word not in _SIZE_WORDS and word not in _sizes(tokens) for word in tokens):
        return ""
    total, active = _counts(sizes, tokens)
    experts = bool(active) or "moe" in tokens
    gaps = {
        name: _gap(model, total, active)
        for name in catalogue.names("model")
        if (model := _profile(catalogue, name)) and (model.architecture.moe is not None) is experts and _usual(model)
    }
    near = [name for name, gap in gaps.items() if gap <= _LARGEST_GAP]
    return min(near, key=lambda name: (sizes[0] not in _sizes(_tokens(name)), gaps[name]), default="")


def _of_its_kind(words: list[str], tokens: list[str], catalogue: Catalogue) -> tuple[str, str]:
    """
    The nearest profile of the family and generation that a name begins with, and the parameters that it says.

    A name that says nothing but its kind and sizes is of any family; both are empty where nothing is near.
    """
    sizes = [word for word in tokens if _SIZE.fullmatch(word) and "x" not in word]
    if not sizes:
        return "", ""
    total, active = _counts(sizes, tokens)
    bare = all(word in _SIZE_WORDS or word in _sizes(tokens) for word in tokens)
    experts = bool(active) or "moe" in tokens or total > _LARGEST_DENSE
    gaps = {
        name: _gap(model, total, active)
        for name in catalogue.names("model")
        if (bare or name.partition("-")[0] == words[0])
        and (model := _profile(catalogue, name))
        and (not bare or _usual(model))
        and (model.architecture.moe is not None) is experts
    }
    near = [name for name, gap in gaps.items() if gap <= _FARTHEST]
    bases = [name for name in near if bare and not experts and name.partition("-")[0] in _BASES]
    alike = [name for name in bases if sizes[0] in _sizes(_tokens(name))]  # 7b is how 7.6 billion are called
    best = min(alike or bases or near, key=gaps.__getitem__, default="")
    if not best:
        return "", ""
    return best, f"{total / 1e9:g}B" + (f"-A{active / 1e9:g}B" if active else "")


def _counts(sizes: list[str], tokens: list[str]) -> tuple[float, float]:
    """Parameters in total, and active ones where they are said, else 0."""
    total = float(sizes[0][:-1]) * (1e9 if sizes[0].endswith("b") else 1e12)
    return total, next((float(found.group(1)) * 1e9 for word in tokens if (found := _ACTIVE.fullmatch(word))), 0.0)


def _profile(catalogue: Catalogue, name: str) -> Model | None:
    """The profile, unless its file is wrong or nobody has read its dimensions."""
    try:
        model: Any = catalogue.get("model", name)
    except InputError:
        return None
    return model if model.computed is not None and model.architecture.verified else None


def _usual(model: Model) -> bool:
    """Whether all its layers attend, as those of most models do: one of which only the size is known may be such."""
    return model.architecture.linear_attention is None and model.architecture.mamba is None


def _gap(model: Model, total: float, active: float) -> float:
    """How far a model's parameters are from those wanted, on the scale of logarithms."""
    computed = model.computed
    if computed is None or total <= 0:
        return math.inf
    gap = abs(math.log(computed.params / total))
    return max(gap, abs(math.log(computed.active_params / active)) / 2) if active else gap


def _missing(kind: str, said: str, known: Mapping[str, str]) -> str:
    similar = list(dict.fromkeys(known[each] for each in nearest(said, known)))
    return f"there is no {kind} profile for {said!r}" + (f"; the nearest is {similar[0]}" if similar else "")
