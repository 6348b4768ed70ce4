"""A split in whole numbers, as frameworks take it; whatever cannot be said so is refused, and nothing is rounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING

from rlsize.errors import Fault

if TYPE_CHECKING:
    from rlsize.facts.allocation import Allocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """
    GPUs as nodes of equal size.

    Args:
        nodes: How many.
        per_node: GPUs of each.
    """

    nodes: int
    per_node: int


@dataclass(slots=True, kw_only=True)
class Split:
    """
    What a snippet sets, in whole numbers; refusals are collected while it is written.

    Args:
        title: What the framework is called in words.
        said: How the loop is laid out, as it was said.
        variant: Which of the framework's ways is written.
        instances: Rollout instances.
        size: GPUs of one instance.
        rollout_gpus: GPUs of the fleet; those of the trainer too where both share.
        trainer_gpus: GPUs of the trainer.
        node: GPUs of a node.
        staleness: Optimizer steps that a sample may be behind.
        prompts: Prompts per optimizer step.
        group: Samples of one prompt.
        refusals: What the framework cannot express.
    """

    title: str
    said: Allocation
    variant: str
    instances: int
    size: int
    rollout_gpus: int
    trainer_gpus: int
    node: int
    staleness: int
    prompts: int
    group: int
    refusals: list[Fault] = field(default_factory=list)

    @property
    def shared(self) -> bool:
        """Whether both sides take turns on the same GPUs."""
        return self.said.shared

    @property
    def gpus(self) -> int:
        """GPUs of both sides."""
        return self.trainer_gpus if self.shared else self.rollout_gpus + self.trainer_gpus

    @property
    def tensor(self) -> int:
        """Tensor-parallel ranks of an instance."""
        return self.said.rollout.tensor or 1

    @property
    def samples(self) -> int:
        """Samples of an optimizer step."""
        return self.prompts * self.group

    @property
    def mini_batch(self) -> int:
        """Prompts of one weight update."""
        return self.prompts // self.said.mini_batches

    def refuse(self, what: str, where: str, todo: str) -> None:
        """Note something that the framework cannot express."""
        fault = Fault(what, where, todo)
        if fault not in self.refusals:
            self.refusals.append(fault)

    def only(self, *names: str) -> None:
        """Refuse degrees of parallelism of an instance that the framework has no key for, as far as was read."""
        for name, degree in self.said.rollout.said().items():
            if name not in names:
                what = f"instances are {name}-parallel over {degree}, and no key for that was read"
                self.refuse(
                    what, "rollout", "nearest: instances with tensor parallelism only (--rollout-tensor-parallel)"
                )

    def runs(self, *engines: str) -> None:
        """Refuse an engine that the framework does not run; where nobody names one, it is the framework's."""
        if self.said.engine and self.said.engine not in engines:
            what = f"the plan is for {self.said.engine}, and {self.title} runs {' or '.join(engines)}"
            self.refuse(what, "--engine", f"nearest: --engine {engines[0]}, at the rate that it reaches")

    def syncs_every_step(self) -> None:
        """Refuse a cadence of weight syncs that the framework has no key for."""
        if self.said.sync_every != 1:
            cadence = f"after every step, not every {self.said.sync_every}"
            what = f"{self.title} syncs weights {cadence}, as far as its keys were read"
            self.refuse(what, "--sync-every", "nearest: --sync-every 1")

    def updates_once(self) -> None:
        """Refuse several weight updates of a batch, where the framework's key for that was not read."""
        if self.said.mini_batches != 1:
            updates = f"{self.said.mini_batches} weight updates"
            what = f"a batch makes {updates}, and {self.title}'s key for that was not read"
            self.refuse(what, "--mini-batches", "nearest: --mini-batches 1")

    def equal_updates(self) -> None:
        """Refuse a batch that does not split into updates of as many samples."""
        unit = self.said.mini_batches // gcd(self.said.mini_batches, self.group)
        self.divided("prompts", self.prompts, unit, "--prompts", "each weight update trains on as many samples")

    def divided(self, what: str, number: int, by: int, flag: str, reason: str) -> int:
        """A whole quotient; a refusal, with the nearest numbers, where there is none."""
        if by > 0 and number % by == 0:
            return number // by
        near = nearest(number, by)
        self.refuse(f"{number} {what} are no multiple of {by}: {reason}", flag, f"nearest: {flag} {near}")
        return max(1, number // max(1, by))

    def pool(self, gpus: int, flag: str, what: str) -> Nodes:
        """A pool as nodes of equal size: part of one, or whole ones."""
        if gpus <= self.node:
            return Nodes(nodes=1, per_node=gpus)
        if gpus % self.node:
            reason = f"{gpus} {what} do not fill whole nodes of {self.node}"
            self.refuse(reason, flag, f"nearest: {flag} {nearest(gpus, self.node)}")
        return Nodes(nodes=max(1, gpus // self.node), per_node=self.node)

    def whole_nodes(self, each: str) -> None:
        """Refuse sides that are no whole nodes, where both together are more than one."""
        if self.gpus > self.node:
            reason = f"beyond one node of {self.node} {each} has whole nodes"
            self.divided("rollout GPUs", self.rollout_gpus, self.node, "--rollout-gpus", reason)
            self.divided("trainer GPUs", self.trainer_gpus, self.node, "--trainer-gpus", reason)

    def rollout_pool(self) -> Nodes:
        """The fleet as nodes; an engine fills a part of a node, or whole ones."""
        pool = self.pool(self.rollout_gpus, "--rollout-gpus", "rollout GPUs")
        self.fits(pool.per_node)
        return pool

    def trainer_pool(self) -> Nodes:
        """The trainer as nodes."""
        return self.pool(self.trainer_gpus, "--trainer-gpus", "trainer GPUs")

    def fits(self, per_node: int) -> None:
        """Refuse engines that would lie across nodes without filling them."""
        if per_node % self.size and self.size % per_node:
            what = f"engines of {self.size} GPUs do not fill nodes of {per_node}"
            near = [size for size in range(1, per_node + 1) if per_node % size == 0]
            closest = sorted(near, key=lambda size: abs(size - self.size))[:2]
            todo = f"nearest: --rollout-tensor-parallel {' or '.join(map(str, sorted(closest)))}"
            self.refuse(what, "--rollout-tensor-parallel", todo)

    def whole_batches(self) -> None:
        """Refuse a batch that does not split into mini batches of whole prompts."""
        self.divided("prompts", self.prompts, self.said.mini_batches, "--prompts", "mini batches hold whole prompts")

    def trainer_note(self) -> tuple[str, ...]:
        """What is said of a trainer whose layout the snippet leaves alone."""
        degrees = self.said.trainer.said()
        if not degrees:
            return ()
        words = ", ".join(f"{name} {degree}" for name, degree in degrees.items())
        return (f"Not set: how the trainer is spread ({words}); its keys depend on the training backend.",)


def nearest(number: int, of: int) -> str:
    """
    The multiples next to a number, in words.

    >>> nearest(20, 8), nearest(5, 8)
    ('16 or 24', '8')
    """
    low = number - number % of
    return " or ".join(str(multiple) for multiple in (low, low + of) if multiple > 0)
