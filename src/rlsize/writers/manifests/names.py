"""Names as Kubernetes takes them; all faults at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rlsize.errors import Fault
from rlsize.units import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_LABEL = 63
LONGEST_NAME = 253
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_QUANTITY = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_HALF_A_LINE = 60
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def is_label(text: str) -> bool:
    """Whether a text is an RFC 1123 label: the names of namespaces, services and worker groups."""
    return len(text) <= LONGEST_LABEL and _LABEL.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether a text is an RFC 1123 subdomain: the names of most objects."""
    return 0 < len(text) <= LONGEST_NAME and all(is_label(part) for part in text.split("."))


def is_qualified(text: str) -> bool:
    """Whether a text is a qualified name, `prefix/name` or `name`: resources and the keys of labels."""
    prefix, slash, name = text.rpartition("/")
    named = len(name) <= LONGEST_LABEL and _QUALIFIED.fullmatch(name) is not None
    return named and (is_name(prefix) if slash else True)


def is_label_value(text: str) -> bool:
    """Whether a text can be the value of a label; it may be empty."""
    return text == "" or (len(text) <= LONGEST_LABEL and _QUALIFIED.fullmatch(text) is not None)


def is_quantity(text: str) -> bool:
    """Whether a text is a Kubernetes quantity above zero, such as 16, 500m or 128Gi."""
    return _QUANTITY.fullmatch(text) is not None and any(sign in "123456789" for sign in text)


def name_faults(names: Mapping[str, str], *, label: frozenset[str]) -> Iterator[Fault]:
    """
    What is wrong with the names of objects.

    Args:
        names: The names by flag; empty ones are left out.
        label: Flags whose names are labels, not subdomains.
    """
    for flag, text in names.items():
        fits, longest, more = (is_label, LONGEST_LABEL, "") if flag in label else (is_name, LONGEST_NAME, " or dots")
        if text and not fits(text):
            what = f"{_brief(text)} is no name that Kubernetes takes (RFC 1123)"
            todo = f"use up to {longest} small letters, digits and hyphens{more}, with a letter or digit at both ends"
            yield Fault(what, flag, todo)


def resource_faults(text: str, flag: str) -> Iterator[Fault]:
    """What is wrong with the name of an extended resource: it has a domain, as nvidia.com/gpu."""
    if "/" not in text or not is_qualified(text):
        yield Fault(f"{_brief(text)} is no extended resource", flag, "write domain/name, such as nvidia.com/gpu")


def url_faults(text: str, flag: str) -> Iterator[Fault]:
    """What is wrong with an address: http or https, a host, no credentials (manifests are kept in plain text)."""
    try:
        parts = urlsplit(text)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and not re.search(r"\s", text)
        secret = parts.username is not None or parts.password is not None
        _ = parts.port
    except ValueError:
        fine, secret = False, False
    if secret:
        yield Fault("the address holds credentials", flag, "leave them out: KEDA takes them by authenticationRef")
    elif not fine or not text.isprintable():
        yield Fault(f"{_brief(text)} is no address", flag, "write http://HOST:PORT")


def label_of(text: str, flag: str, faults: list[Fault], example: str = "pool=rollout") -> dict[str, str]:
    """A label, `key=value`; a fault is noted where it is none."""
    key, equals, value = text.partition("=")
    if not equals or not is_qualified(key) or not is_label_value(value):
        faults.append(Fault(f"{_brief(text)} is no label", flag, f"write KEY=VALUE, such as {example}"))
        return {}
    return {key: value}


def toleration_of(text: str, flag: str, faults: list[Fault]) -> dict[str, str]:
    """A toleration, `key=value:Effect` or `key:Effect`, for a taint; a fault is noted where it is none."""
    taint, _, effect = text.rpartition(":")
    key, equals, value = taint.partition("=")
    if not is_qualified(key) or not is_label_value(value) or effect not in _EFFECTS:
        todo = f"write KEY[=VALUE]:EFFECT with one of {', '.join(_EFFECTS)}"
        faults.append(Fault(f"{_brief(text)} is no taint", flag, todo))
        return {}
    matched = {"operator": "Equal", "value": value} if equals else {"operator": "Exists"}
    return {"key": key, **matched, "effect": effect}


def _brief(text: str) -> str:
    return repr(cut(text, _HALF_A_LINE))
