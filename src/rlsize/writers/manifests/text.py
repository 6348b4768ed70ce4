"""The text of a resize: a header that says what it is, and its documents as YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable


def commented(lines: Iterable[str]) -> str:
    """Lines as comments; nothing in them can end a comment."""
    return "".join(f"# {printable(' '.join(line.split()))}\n" for line in lines)


def yaml_documents(documents: Iterable[Any]) -> str:
    """Documents in the order in which they are given, keys as they stand."""
    import yaml

    class Plain(yaml.SafeDumper):
        """A dumper that writes everything out."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002, ANN401 (yaml's protocol)
            return True

    texts = [
        yaml.dump(document, Dumper=Plain, sort_keys=False, allow_unicode=True, width=10_000) for document in documents
    ]
    return "---\n".join(texts)
