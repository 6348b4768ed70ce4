"""What is trained, on which GPUs, by which algorithm, and where the two sides run."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import AMOUNT_OR_NONE, COUNT, PARAMS
from rlsize.quantities.row import Row, Switch, Text, Word

MODES = ("colocated", "disaggregated", "sync", "overlapped", "one-step-off", "async", "partial")

ROWS = (
    Row(
        "framework",
        Text("NAME[@VERSION]"),
        "The framework that runs the loop; a launch script tells its own.",
        "framework",
        "--",
    ),
    Row("model", Text("NAME|FILE"), "A model profile, or the path of a config.json.", "model", "--"),
    Row("params", PARAMS, "Parameters in total, where there is no profile: 70B.", "model.", "--"),
    Row("active_params", PARAMS, "Parameters that work on each token; all of them when not given.", "model."),
    Row("gpu", Text(), "A GPU profile, such as h100-sxm.", "cluster.", "--"),
    Row("gpus", COUNT, "GPUs of both pools; shared ones where colocated.", "cluster.", "--"),
    Row("gpus_per_node", COUNT, "GPUs in one node.", "cluster.", "--"),
    Row("rollout_gpu", Text(), "A GPU profile of the rollout fleet, where its GPUs are of another kind.", "cluster."),
    Row("trainer_gpu", Text(), "A GPU profile of the trainer, where its GPUs are of another kind.", "cluster."),
    Row("interconnect", Text(), "A link profile between nodes, such as infiniband-400g.", "cluster."),
    Row("cluster", Text(), "A cluster profile, in place of the fields above.", "cluster.profile"),
    Row(
        "algorithm",
        Word(("grpo", "ppo", "rloo", "reinforce++", "dapo", "sft")),
        "The RL algorithm.",
        "algorithm.name",
        "--",
        "grpo",
    ),
    Row(
        "reference",
        Switch("--no-reference"),
        "Whether a frozen reference model is kept for a KL term.",
        "algorithm.",
        "--",
    ),
    Row(
        "reference_model",
        Text(),
        "The reference where it is another model than the policy, such as a teacher: its profile.",
        "algorithm.",
    ),
    Row("critic", Switch("--no-critic"), "Whether a critic is trained; ppo does.", "algorithm.", "--"),
    Row(
        "reward_model",
        Text(or_yes=True),
        "A reward model: its profile, true for one of the policy's size, or none.",
        "algorithm.",
        "--",
    ),
    Row("critic_params", PARAMS, "Parameters of a critic of another size.", flag="--"),
    Row("reference_params", PARAMS, "Parameters of a reference of another size.", flag="--"),
    Row("reward_params", PARAMS, "Parameters of a reward model of another size.", flag="--"),
    Row(
        "tokens_generated_per_trained_token",
        Quantity("1", least=1.0, most=1e4, spread=True),
        "Response tokens generated for each one that is trained.",
        "algorithm.",
        "--tokens-per-trained-token",
        1.0,
        "nothing is thrown away",
    ),
    Row("mode", Word(MODES), "How rollout and training are laid out in time.", "placement.", "--"),
    Row(
        "max_staleness",
        AMOUNT_OR_NONE,
        "Staleness cap in optimizer steps, k.",
        "placement.",
        "--",
        1.0,
        "one step: the cap of most published asynchronous runs, and NeMo-RL's default",
    ),
    Row("instances", COUNT, "Rollout instances.", "placement.", "--"),
    Row("rollout_gpus", COUNT, "GPUs of the rollout fleet.", "placement.", "--"),
    Row("trainer_gpus", COUNT, "GPUs of the trainer.", "placement.", "--"),
)
