"""Names, labels, taints, quantities and addresses as Kubernetes takes them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import Fault
from rlsize.writers.manifests.names import (
    is_label,
    is_label_value,
    is_name,
    is_qualified,
    is_quantity,
    label_of,
    toleration_of,
    url_faults,
)


def test_labels_are_rfc_1123() -> None:
    """63 small letters, digits and hyphens, with a letter or digit at both ends; names may have dots."""
    assert all(map(is_label, ["a", "0", "rollout-2", "a" * 63]))
    assert not any(map(is_label, ["", "-a", "a-", "A", "a_b", "a.b", "a" * 64, "a\n", "é"]))
    assert is_name("a.b-c.d")
    assert not any(map(is_name, ["a..b", ".a", "a." + "b" * 64, ".".join(["a" * 60] * 5)]))


def test_resources_and_keys_are_qualified_names() -> None:
    """A domain, a slash and a name; values of labels may be empty."""
    assert all(map(is_qualified, ["nvidia.com/gpu", "amd.com/gpu", "pool", "nvidia.com/mig-1g.5gb"]))
    assert not any(map(is_qualified, ["", "/gpu", "nvidia.com/", "Nvidia.com/gpu", "a/b/c", "a b"]))
    assert is_label_value("")
    assert not is_label_value("a b")


def test_quantities_are_above_zero() -> None:
    """Kubernetes' own units only."""
    assert all(map(is_quantity, ["16", "0.5", "500m", "128Gi", "2T"]))
    assert not any(map(is_quantity, ["0", "-1", "1 GB", "1GB", "1e3", "", "٣", "." * 3]))


@pytest.mark.parametrize("text", ["ftp://h", "http://", "h:9090", "http://h:x", "http://h\nx", "", "http://[::1"])
def test_no_other_address_is_taken(text: str) -> None:
    """Only http and https, with a host."""
    assert [fault.where for fault in url_faults(text, "--prometheus")] == ["--prometheus"]


def test_credentials_are_refused_and_not_repeated() -> None:
    """A manifest is kept in plain text."""
    (fault,) = url_faults("http://me:secret@prom:9090", "--prometheus")
    assert "secret" not in str(fault)
    assert not [*url_faults("https://prom.example:9090/select/0/prometheus", "--prometheus")]


def test_labels_and_taints_are_parsed() -> None:
    """KEY=VALUE, and KEY[=VALUE]:EFFECT."""
    faults: list[Fault] = []
    assert label_of("a.b/c=d", "--rollout-label", faults) == {"a.b/c": "d"}
    equal = {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    assert toleration_of("spot=true:NoSchedule", "--rollout-taint", faults) == equal
    assert toleration_of("x/y:NoExecute", "", faults) == {"key": "x/y", "operator": "Exists", "effect": "NoExecute"}
    assert not faults


@settings(max_examples=40)
@given(st.text(max_size=20))
def test_whatever_is_no_label_or_taint_is_a_fault(text: str) -> None:
    """Never a traceback, never half of one."""
    for parse in (label_of, toleration_of):
        faults: list[Fault] = []
        assert bool(parse(text, "--flag", faults)) != bool(faults)
