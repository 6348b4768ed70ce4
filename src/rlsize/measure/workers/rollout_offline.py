"""
A rollout instance of its own: vLLM's `LLM`, stepped here, with groups as requests of n samples.

The engine is stepped one by one as `LLM.generate` does it, so that load can be kept constant and counters read between
steps. Outputs are taken whole at the end of a request: to hand on each token would slow a large batch down.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rlsize.measure.workers.events import say
from rlsize.measure.workers.load import Commands, Group, Phase, Tale

LAST = Group("settle", prompt_tokens=1, samples=1, response_tokens=1)


class LoadedEngine:
    """
    vLLM in this process.

    Args:
        job: `engine` (arguments of `LLM`), `temperature`, `seed`.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        from vllm import LLM

        self.job = job
        self.llm = LLM(disable_log_stats=False, skip_tokenizer_init=True, seed=job["seed"], **job["engine"])
        self.engine = self.llm.llm_engine
        self.config = self.engine.vllm_config
        self.vocabulary: int = self.config.model_config.get_vocab_size()
        self.waiting: dict[str, Group] = {}

    def page(self) -> str:
        """The engine's metrics page, as a server would show it."""
        from prometheus_client import generate_latest

        return generate_latest().decode()

    def add(self, group: Group) -> None:
        """Ask for a group."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            n=group.samples,
            max_tokens=group.response_tokens,
            ignore_eos=True,
            detokenize=False,
            temperature=self.job["temperature"],
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        name = f"{group.key}/{group.salt}{group.turn}"
        self.waiting[name] = group
        prompt: dict[str, Any] = {"prompt_token_ids": group.token_ids(self.vocabulary)}
        prompt |= {"cache_salt": group.cache_salt} if group.cache_salt else {}
        self.engine.add_request(name, prompt, params)

    def step(self) -> list[tuple[Group, list[list[int]], float]]:
        """Run one engine step; the groups that finished, the tokens of each sample, and how long the first took."""
        finished = [output for output in self.engine.step() if output.finished]
        return [
            (
                self.waiting.pop(output.request_id),
                [sample.token_ids for sample in output.outputs],
                getattr(output.metrics, "first_token_latency", 0.0),
            )
            for output in finished
            if output.request_id in self.waiting
        ]

    def abort(self) -> None:
        """Throw out what is in flight."""
        self.engine.abort_request(list(self.waiting))
        while self.engine.has_unfinished_requests():
            self.engine.step()
        self.waiting = {}

    def settle(self) -> None:
        """
        Begin anew: counters complete, prefix cache empty.

        The engine hands its counts on with the next step's outputs; those of samples that were thrown out last would
        arrive in the middle of what comes next.
        """
        self.add(LAST)
        while self.waiting:
            self.step()
        self.llm.reset_prefix_cache()

    def facts(self) -> dict[str, Any]:
        """What it is, for the record."""
        from vllm.platforms import current_platform

        config, cpu = self.config, current_platform.is_cpu()
        gpus = config.parallel_config.world_size
        return {
            "versions": versions(),
            "gpus": [] if cpu else [current_platform.get_device_name(index) for index in range(gpus)],
            "max_num_seqs": config.scheduler_config.max_num_seqs,
            "max_model_len": config.model_config.max_model_len,
            "block_size": config.cache_config.block_size,
            "dtype": str(config.model_config.dtype).removeprefix("torch."),
            "kv_dtype": str(config.cache_config.cache_dtype),
            "gpus_per_instance": gpus,
            "config": config.model_config.hf_config.to_dict(),
        }


def versions() -> dict[str, str]:
    """Versions of what does the work."""
    import torch
    import transformers
    import vllm

    found = {"vllm": vllm.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
    return found | ({"cuda": torch.version.cuda} if torch.version.cuda else {})


def run(engine: LoadedEngine, phase: Phase, commands: Commands) -> None:
    """Generate until all is done, or until told to halt."""
    tale = Tale(phase)
    engine.settle()
    tale.begin(engine.page())
    while not phase.over(commands):
        for group in phase.admit():
            engine.add(group)
        if not engine.waiting:
            break
        for group, made, first in engine.step():
            tale.finish(group, group.samples, sum(map(len, made)), phase.sent[group] + first if first else None)
            for follow in phase.ended(group, made):
                engine.add(follow)
        if tale.due():
            tale.tell(engine.page())
    tale.end(engine.page())
    engine.abort()


def main(path: str) -> None:
    """Start the engine, say so, and do what is asked until there is nothing more to do."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    commands = Commands()
    begun = time.perf_counter()
    engine = LoadedEngine(job)
    facts = json.loads(json.dumps(engine.facts(), default=str))  # what JSON cannot hold as text
    say("ready", page=engine.page(), start_seconds=time.perf_counter() - begun, **facts)
    while (command := commands.wait())["do"] != "quit":
        if command["do"] == "load":
            run(engine, Phase(command), commands)


if __name__ == "__main__":
    main(sys.argv[1])
