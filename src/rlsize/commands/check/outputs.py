"""Where the verdicts of a check go beside the answer: JUnit XML, annotations and a summary on GitHub."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.commands.check.report import findings_of, findings_report
from rlsize.errors import DoesNotFitError, InputError, noting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.errors import Fault, RlsizeError
    from rlsize.reports.findings import Finding
    from rlsize.reports.report import Report

_SUMMARY, _WORKSPACE = "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """
    What was asked for beside the answer.

    Args:
        junit: Where JUnit XML goes; None for nowhere.
        github: Whether GitHub is told.
        save: Where the loop is saved as a plan; None for nowhere.
        force: Whether files that exist are replaced.
        suite: What is checked, for the test report.
    """

    junit: str | None
    github: bool
    save: str | None
    force: bool
    suite: str

    def prepare(self) -> None:
        """
        Find out before the work whether its results can be written after it.

        Raises:
            InputError: They cannot.
        """
        from rlsize.writers.files import check_target

        faults: list[Fault] = []
        for target in filter(None, (self.junit, self.save)):
            with noting(faults):
                check_target(target, self.force)
        if faults:
            told = InputError(*faults)
            replace(self, junit=None).gave_up(told)
            raise told

    def gave_up(self, error: RlsizeError) -> None:
        """Write why there is no answer, or that it is no before any limit was looked at."""
        found = findings_of(error.faults, answer=isinstance(error, DoesNotFitError))
        self.tell(found, findings_report(found))

    def tell(self, found: Sequence[Finding], report: Report) -> None:
        """
        Write what was found.

        Raises:
            InputError: A file cannot be written.
        """
        from rlsize.writers.ci import junit_text, workflow_commands
        from rlsize.writers.files import write_whole
        from rlsize.writers.markdown import markdown_text

        if self.junit is not None:
            write_whole(self.junit, junit_text(found, self.suite), self.force)
        if self.github:
            sys.stdout.flush()
            sys.stderr.write(workflow_commands([replace(one, file=_in_repository(one.file)) for one in found]))
            _add_to_summary(markdown_text(report))


def _in_repository(file: str) -> str:
    """A file by its path in the checked-out repository, as annotations want it."""
    workspace = os.environ.get(_WORKSPACE)
    if not file or not workspace:
        return file
    try:
        path, root = Path(file).resolve(), Path(workspace).resolve()
    except (OSError, ValueError, RuntimeError):
        return file
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


def _add_to_summary(text: str) -> None:
    """Append to the summary of the step; where that does not work, the verdict stands all the same."""
    from rlsize.writers.ci import LARGEST_SUMMARY, summary

    target = os.environ.get(_SUMMARY)
    if not target:
        sys.stderr.write(f"note: {_SUMMARY} is not set, so there is no step summary\n")
        return
    file = Path(target)
    try:
        size = file.stat().st_size if file.exists() else 0
        added = summary(text if not size else f"\n{text}", LARGEST_SUMMARY - size)
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(added)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        sys.stderr.write(f"warning: the step summary {target} cannot be written: {reason}\n")
