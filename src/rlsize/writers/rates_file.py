"""A rates file as text: what `fleet --per-instance` takes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlsize.facts.rates import Rates

HEADER = "rlsize: {kind: rates, version: 1}\n"


def rates_text(rates: Rates) -> str:
    """The YAML of a rates file; what is unknown is left out, except where its absence is worth seeing."""
    import yaml

    class Plain(yaml.SafeDumper):
        """A dumper that writes everything out: rlsize reads no aliases."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002, ANN401 (yaml's protocol)
            return True

    content = _known(asdict(rates))
    content["gpus_per_instance"] = rates.gpus_per_instance
    return HEADER + yaml.dump(content, Dumper=Plain, sort_keys=False, allow_unicode=True, width=110)


def _known(value: Any) -> Any:  # noqa: ANN401 (any content of a dataclass)
    if isinstance(value, dict):
        return {key: _known(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_known(entry) for entry in value]
    return value
