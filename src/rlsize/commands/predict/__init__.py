"""`rlsize predict`: rates and times from model, GPUs and workload, each with its band."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from rlsize.shell.command import Command

COMMANDS = {
    "rollout": "rollout.predict_rollout",
    "train": "train.predict_train",
    "sync": "sync.predict_sync",
    "step": "step.predict_step",
}
"""Each command's function as `module.name`, imported when it is asked for."""


class Predictions(TyperGroup):
    """A group that imports a command only when it is asked for."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002 (typer's signature)
        """The names, in the order in which help shows them."""
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]  # noqa: ARG002 (typer's signature)
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(".")
        single = typer.Typer(add_completion=False, rich_markup_mode="rich")
        single.command(cmd_name, cls=Command)(getattr(import_module(f"rlsize.commands.predict.{module}"), function))
        return typer.main.get_command(single)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]  # typer's context is the one it makes
        """Offer the nearest command where there is none of that name."""
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # only the names are read, for the suggestion
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Predictions, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


@app.callback()
def _predict() -> None:
    """
    Rates and times from model, GPUs and workload, each with its band.

    Example:  rlsize predict rollout --model qwen3-32b --gpu h200-sxm --tensor-parallel 2
    """
