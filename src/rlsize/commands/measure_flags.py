"""The flags of `measure`."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.facts.fields import Quantity
from rlsize.shell.command import quantity

ROLLOUT, TRAINER, SYNC, WORKLOAD = "Rollout", "Trainer", "Weight sync", "Workload (in place of the scenario's)"


def _text(flag: str, text: str, panel: str, metavar: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        flag, help=text, rich_help_panel=panel, metavar=metavar, show_default=False
    )
    return option


Model = Annotated[
    str | None,
    _text("--model", "A model profile, a folder with a config.json, or a Hugging Face id.", "Inputs", "NAME|DIR|ID"),
]
Only = Annotated[
    str | None,
    _text("--only", "What to measure, of rollout, train and sync; by default what the machine can.", "Inputs", "LIST"),
]
DummyWeights = Annotated[
    bool,
    typer.Option(
        "--dummy-weights",
        help="Random weights: nothing is downloaded, and speed needs no more.",
        rich_help_panel="Inputs",
    ),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="A first look: two levels, 45 s for each kind.", rich_help_panel="Inputs"),
]
Seconds = Annotated[str | None, quantity("--seconds", "Time for each kind, loading apart; 240 by default.")]
Device = Annotated[
    str | None,
    _text("--device", "Of trainer and sync: cuda, cpu or auto (the default).", "Inputs", "NAME"),
]
Seed = Annotated[str | None, quantity("--seed", "Seed of lengths, prompts and weights; 0 by default.")]
Show = Annotated[str | None, _text("--show", "Show what a rates file holds, and measure nothing.", "Inputs", "FILE")]

Prompts = Annotated[str | None, quantity("--prompts", "Prompts per optimizer step.", WORKLOAD)]
Group = Annotated[str | None, quantity("--group|--group-size", "Samples of one prompt, G.", WORKLOAD)]
PromptTokens = Annotated[str | None, quantity("--prompt-tokens", "Prompt length in tokens.", WORKLOAD)]
ResponseTokens = Annotated[str | None, quantity("--response-tokens", "Mean response length in tokens.", WORKLOAD)]
ResponseCv = Annotated[
    str | None, quantity("--response-cv", "Standard deviation over mean of response lengths.", WORKLOAD)
]
MaxResponseTokens = Annotated[str | None, quantity("--max-response-tokens", "Cap on the response length.", WORKLOAD)]
Temperature = Annotated[str | None, quantity("--temperature", "Sampling temperature; 1 by default.", WORKLOAD)]

Urls = Annotated[
    list[str] | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="A server that runs already, http://HOST:PORT; repeatable for a fleet.",
        rich_help_panel=ROLLOUT,
        show_default=False,
    ),
]
Concurrency = Annotated[
    str | None, _text("--concurrency", "Samples in flight to measure at, as 16,64,256.", ROLLOUT, "LIST")
]
MaxNumSeqs = Annotated[
    str | None, quantity("--max-num-seqs", "The engine's limit on running samples; by default its own.", ROLLOUT)
]
TensorParallel = Annotated[str | None, quantity("--tensor-parallel", "GPUs that share each layer.", ROLLOUT)]
Dtype = Annotated[str | None, _text("--dtype", "Weights: bf16 (the default), fp16, fp32, fp8.", ROLLOUT, "NAME")]
KvDtype = Annotated[str | None, _text("--kv-dtype", "Width of the KV cache: bf16 or fp8.", ROLLOUT, "NAME")]
MemoryFraction = Annotated[
    str | None, quantity("--memory-fraction", "Share of GPU memory that the engine may use.", ROLLOUT)
]
EnginePython = Annotated[
    str | None, _text("--engine-python", "The Python that has vLLM; by default this one.", ROLLOUT, "PATH")
]
EngineArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--engine-arg",
        metavar="NAME=VALUE",
        help="An argument of vLLM's LLM, as enforce_eager=true; repeatable.",
        rich_help_panel=ROLLOUT,
        show_default=False,
    ),
]
StartTimeout = Annotated[
    str | None,
    quantity("--start-timeout", "Most seconds to load, trainers too; 1800 by default.", ROLLOUT),
]

TrainerPython = Annotated[
    str | None, _text("--trainer-python", "The Python that has torch; by default that of the engine.", TRAINER, "PATH")
]
Processes = Annotated[
    str | None,
    quantity("--trainer-gpus", "GPUs to train on (CPU: processes); by default all.", TRAINER),
]
MicroBatchTokens = Annotated[
    str | None,
    quantity("--micro-batch-tokens", "Tokens in a micro-batch of a GPU; by default 16,384.", TRAINER),
]
Recompute = Annotated[
    str | None,
    _text("--recompute", "Activations: none, selective or full (the default).", TRAINER, "NAME"),
]
Torchrun = Annotated[
    str | None,
    _text("--torchrun", "torchrun's flags for several nodes, in place of --standalone.", TRAINER, "FLAGS"),
]

Buckets = Annotated[str | None, _text("--buckets", "Bucket sizes, as 64MB,512MB; by default three.", SYNC, "LIST")]
SenderRanks = Annotated[str | None, quantity("--sender-ranks", "Ranks that send; by default half of the GPUs.", SYNC)]
ReceiverRanks = Annotated[
    str | None, quantity("--receiver-ranks", "Ranks that receive; by default the other half.", SYNC)
]

EngineUpdate = Annotated[
    bool,
    typer.Option(
        "--engine-update",
        help="Also time how a running vLLM loads new weights; writes two checkpoints to a temporary folder.",
        rich_help_panel=SYNC,
    ),
]

Log = Annotated[str | None, _text("--log", "Keep what engines and trainers print.", "Output", "FILE")]

SECONDS = Quantity("s", least=1.0, most=86_400.0)
LENGTH = Quantity("token", least=1.0, most=1e7, whole=True)
MEAN = Quantity("token", least=1.0, most=1e7)
CV = Quantity("1", least=0.0, most=20.0)
TEMPERATURE = Quantity("1", least=0.0, most=10.0)
RANKS = Quantity("count", most=1024, whole=True)
SEED = Quantity("count", least=0.0, most=1e9, whole=True)
PROMPTS = Quantity("count", most=1e6, whole=True)
GROUP = Quantity("count", most=4096, whole=True)
CONCURRENCY = Quantity("count", most=65_536, whole=True)
BYTES = Quantity("B", least=1e3, most=1e12)
START = Quantity("s", least=1.0, most=86_400.0)
MEMORY_FRACTION = Quantity("1", least=0.01, most=1.0)
Timeout = Annotated[str | None, quantity("--timeout", "Most seconds for one page; 10 by default.", "Access")]
Save = Annotated[
    str | None, quantity("--save", "Write a rates file that `fleet --per-instance` takes.", "Output", "FILE")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]
