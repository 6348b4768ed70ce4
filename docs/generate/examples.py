"""The examples of the checkout, as `examples/run.py` reads them."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from generate.files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

WITHOUT_REPORT = {"init", "schema", "explain", "profiles"}
_FORMS = ("--csv", "--markdown", "--explain")


def as_json() -> Iterator[tuple[str, int]]:
    """The command of every example that gives figures, with `--json`, and its exit code."""
    run = _module()
    for file in run.files():
        line, exit_code = run.example(file)
        words = [word for word in line.split() if word not in _FORMS]
        if words[1] not in WITHOUT_REPORT and exit_code in (0, 1):
            yield " ".join([*words, *([] if "--json" in words else ["--json"])]), exit_code


def _module() -> Any:  # noqa: ANN401 (a module)
    spec = importlib.util.spec_from_file_location("examples_run", ROOT / "examples" / "run.py")
    if spec is None or spec.loader is None:
        raise RuntimeError("examples/run.py cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
