"""Which way an answer moves when one input grows: up, down, or neither."""

from __future__ import annotations

import inspect
from random import Random
from typing import TYPE_CHECKING

import pytest

from rlsize.reports.equation_page import equation

if TYPE_CHECKING:
    from tests.equations.conftest import Case

# Each argument with the way the answer moves: + up or stays, - down or stays, ~ either.
DIRECTIONS = {
    "matching.consumption": "tokens_per_step+ train_seconds-",
    "matching.tokens_per_step": "prompts+ group_size+ response_tokens+",
    "matching.required_supply": "consumption+ tokens_generated_per_trained_token+",
    "matching.fleet_supply": "instances+ instance_rate+ headroom+",
    "matching.matched_instances": "required_supply+ instance_rate- headroom-",
    "matching.utilisation": "required_supply+ supply-",
    "matching.loop_throughput": "rollout_rate+ trainer_rate+",
    "matching.idle_fraction": "rollout_rate~ trainer_rate~",
    "matching.balanced_rollout_gpus": "gpus+ rollout_gpu_rate- trainer_gpu_rate+",
    "matching.colocated_throughput": "gpus+ rollout_gpu_rate+ trainer_gpu_rate+",
    "matching.throughput_with_swap": "tokens_per_step+ throughput+ swap_seconds-",
    "matching.speedup_from_scaling": "rollout_seconds~ train_seconds~ rollout_factor+ trainer_factor+",
    "matching.speedup_from_scaling_overlapped": "rollout_rate~ trainer_rate~ rollout_factor+ trainer_factor+",
    "matching.implied_mfu": "tokens_per_second+ flops_per_token+ gpus- peak_flops-",
    "imbalance.trainer_idle_fraction": "supply- required_supply+",
    "imbalance.backlog_growth": "supply+ required_supply-",
    "imbalance.oldest_sample_age": "seconds+ supply+ required_supply-",
    "imbalance.seconds_until_new_sample_is_stale": "max_staleness+ tokens_per_step+ growth-",
    "imbalance.seconds_until_oldest_is_stale": "max_staleness+ seconds_per_step+ supply- required_supply+",
    "imbalance.queue_allowed": "max_staleness+ samples_per_step+ in_flight-",
    "imbalance.stall_absorbed": "queue_samples+ samples_per_step- seconds_per_step+",
    "imbalance.tokens_generated_per_trained_token": "oversampling+ kept_fraction- dropped_fraction+",
    "headroom.remaining_headroom": "headroom+ parts_included+ parts-",
    "weight_sync.weight_bytes": "params+ bytes_per_param+",
    "weight_sync.quantised_sync_bytes": "params+ bytes_per_param+ bytes_per_scale+ params_per_scale-",
    "weight_sync.delta_sync_bytes": "params+ changed_fraction+ bytes_per_index+ bytes_per_param+",
    "weight_sync.break_even_changed_fraction": "bytes_per_index- bytes_per_param+",
    "weight_sync.weight_sync_time": "params+ bytes_per_param+ bandwidth-",
    "weight_sync.transfer_time": "sync_bytes+ bandwidth- latency+",
    "sync_transports.broadcast_time": "sync_bytes+ bucket_bytes~ bandwidth- bucket_latency+ hops+",
    "sync_transports.gather_time": "sync_bytes+ shards+ bandwidth-",
    "sync_transports.bytes_received_per_gpu": "sync_bytes+ tensor_parallel-",
    "sync_transports.bytes_sent_per_gpu": "sync_bytes+ instances+ trainer_gpus-",
    "sync_transports.rdma_time": "sent_bytes+ received_bytes+ sender_bandwidth- receiver_bandwidth-",
    "sync_transports.store_sync_time":
        "sync_bytes+ write_bandwidth- read_bandwidth- readers+ reader_bandwidth- reload_seconds+",
    "sync_transports.reshard_time": "sync_bytes+ tensor_parallel- gpus+ bandwidth-",
    "sync_pause.exposed_sync_time": "sync_seconds+ hidden_seconds-",
    "sync_pause.sync_pause_fraction": "exposed_sync_seconds+ step_seconds_without_sync- sync_every-",
    "sync_pause.sync_cadence": "exposed_sync_seconds+ step_seconds_without_sync- target_fraction-",
    "memory.training_bytes_per_param":
        "bytes_per_param+ bytes_per_gradient+ bytes_per_master+ bytes_per_optimizer_state+",
    "memory.optimizer_bytes_per_param": "bytes_per_master+ bytes_per_optimizer_state+",
    "memory.trainer_state_bytes": "params+ training_bytes_per_param+",
    "memory.inference_weight_bytes":
        "params+ bytes_per_param+ unquantised_params+ bytes_per_unquantised_param+",
    "memory.params_per_gpu":
        "dense_params+ routed_params+ tensor_parallel- pipeline_parallel- expert_parallel- expert_tensor_parallel-",
    "memory.sharded_state_bytes":
        "params+ bytes_per_param+ bytes_per_gradient+ bytes_per_optimizer+ "
        "weight_shards- gradient_shards- optimizer_shards-",
    "memory.unsharded_layer_bytes": "layer_params+ bytes_per_param+ bytes_per_gradient+ prefetched_layers+",
    "memory.optimizer_offload_time": "offloaded_bytes+ bandwidth-",
    "memory.weight_offload_time": "params+ bytes_per_param+ bytes_per_gradient+ micro_batches+ bandwidth-",
    "memory.activation_offload_time":
        "tokens+ layers+ hidden_size+ bytes_per_activation+ hidden_copies+ bandwidth-",
    "memory.gpus_needed": "sharded_bytes+ bytes_on_every_gpu+ gpu_memory- usable_fraction-",
    "activations.gated_mlp_hidden_copies": "attention_copies+ intermediate_size+ hidden_size-",
    "activations.mean_mlp_width":
        "layers- dense_layers+ dense_width+ dense_matrices+ moe_layers+ working_width+ moe_matrices+",
    "activations.tokens_per_context_rank": "micro_batch_tokens+ context_parallel-",
    "activations.activation_bytes_per_layer":
        "tokens+ hidden_size+ bytes_per_activation+ replicated_copies+ sequence_parallel- "
        "sharded_copies+ tensor_parallel-",
    "activations.activation_bytes": "layers+ bytes_per_layer+ working_bytes+",
    "activations.logits_bytes": "tokens+ vocab_size+ bytes_per_logit+ tensor_parallel-",
    "redundancy.cacheable_prompt_tokens": "prompt_tokens+ block_tokens~",
    "redundancy.cacheable_shared_tokens": "shared_tokens+ prompt_tokens+ block_tokens~",
    "redundancy.instances_per_group_random": "group_size+ instances+",
    "redundancy.instances_per_group_round_robin": "group_size+ instances+",
    "redundancy.prefix_cache_hit_ratio":
        "group_size+ prompt_tokens- cacheable_prompt_tokens+ cacheable_shared_tokens+ instances_per_group-",
    "redundancy.prefill_tokens_saved": "group_size+ prompt_tokens+ hit_ratio+",
    "redundancy.prefill_time_fraction":
        "instance_rate+ prompt_tokens+ response_tokens- hit_ratio- prefill_rate-",
    "redundancy.instance_rate_after_caching":
        "instance_rate+ prefill_time_fraction+ hit_ratio- expected_hit_ratio+",
    "redundancy.deduplicated_fraction": "group_size+ prompt_tokens+ response_tokens-",
    "iteration.completions_per_second": "instances+ group_size+ group_seconds-",
    "iteration.rollout_seconds": "samples_per_step+ completions_per_second-",
    "iteration.synchronous_iteration_time": "rollout_seconds+ train_seconds+ exposed_sync_seconds+",
    "iteration.overlapped_iteration_time": "rollout_seconds+ train_seconds+ exposed_sync_seconds+",
    "iteration.colocated_iteration_time": "rollout_seconds+ train_seconds+ swap_seconds+",
    "iteration.phase_time_on": "phase_seconds+ pool_gpus+ gpus-",
    "iteration.break_even_swap_time": "overlapped_seconds+ rollout_seconds- train_seconds-",
    "iteration.iterations_per_day": "iteration_seconds-",
    "iteration.rollout_share": "rollout_seconds+ iteration_seconds-",
    "iteration.verifier_workers": "samples_per_second+ verify_seconds+",
    "money.gpu_hours": "gpus+ seconds+",
    "money.blended_gpu_hour": "on_demand_gpu_hour+ preemptible_gpu_hour+ preemptible_fraction-",
    "money.effective_gpu_hour": "gpu_hour+ lost_fraction+",
    "money.cost_per_step": "rollout_gpus+ rollout_gpu_hour+ trainer_gpus+ trainer_gpu_hour+ step_seconds+",
    "money.idle_cost_per_step": "gpus+ gpu_hour+ idle_fraction+ step_seconds+",
    "money.cost_per_sample": "cost_per_step+ samples_per_step-",
    "money.cost_per_million_trained_tokens": "cost_per_step+ tokens_per_step-",
    "money.goodput": "tokens_per_step+ step_seconds- rollout_gpus- trainer_gpus-",
}  # fmt: skip
DRAWS = 20


def directions(name: str) -> dict[str, str]:
    """The sign of each argument."""
    return {entry[:-1]: entry[-1] for entry in DIRECTIONS[name].split()}


@pytest.mark.parametrize("name", DIRECTIONS)
def test_every_argument_has_a_direction(name: str) -> None:
    """The table names the equation's arguments, all of them, in their order."""
    assert list(directions(name)) == list(inspect.signature(equation(name)).parameters)


def test_the_answer_moves_as_the_table_says(case: Case) -> None:
    """Around each golden case, a larger input moves the answer the one way only."""
    if case.name not in DIRECTIONS:
        return
    random = Random(str(case))
    for argument, sign in directions(case.name).items():
        for _ in range(DRAWS if sign != "~" else 0):
            smaller, larger = sorted(case.inputs[argument] * random.uniform(0.8, 1.2) for _ in range(2))
            before, after = case.result(**{argument: smaller}), case.result(**{argument: larger})
            slack = 1e-12 * max(abs(before), abs(after))
            assert after >= before - slack if sign == "+" else after <= before + slack, (argument, smaller, larger)
