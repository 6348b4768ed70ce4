"""Keys that are known without being read: those that must not be there, and those that change nothing."""

from __future__ import annotations

from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Keys that change counts in a way that is not modelled, whatever the family.
REFUSED: Mapping[str, str] = MappingProxyType({
    "is_encoder_decoder": "encoder-decoder models are not read",
    "block_configs": "layers of many shapes are not read",
    "num_kv_shared_layers": "layers that share a cache are not read",
    "hidden_size_per_layer_input": "embeddings in every layer are not read",
    "vocab_size_per_layer_input": "embeddings in every layer are not read",
    "global_head_dim": "heads of two sizes are not read",
    "num_global_key_value_heads": "heads of two sizes are not read",
    "swa_num_attention_heads": "heads of two sizes are not read",
    "swa_num_key_value_heads": "heads of two sizes are not read",
    "swa_head_dim": "heads of two sizes are not read",
    "attn_layer_period": "this mix of attention and recurrent layers is not read",
    "mamba_d_state": "this kind of recurrent layer is not read",
    "ssm_cfg": "this kind of recurrent layer is not read",
    "linear_attn_config": "this kind of recurrent layer is not read",
    "moe_latent_size": "experts of a reduced width are not read",
    "zero_expert_num": "experts without weights are not read",
    "compress_ratios": "a compressed cache is not read",
    "attention_chunk_size": "attention in chunks is not read",
    "intermediate_size_mlp": "dense layers of another width beside the experts are not read",
    "mamba_proj_bias": "biases of Mamba projections are not read",
    "lm_head_bias": "a bias of the output head is not read",
})  # fmt: skip

# Keys that change neither parameters nor cache; `*` stands for anything.
_IGNORED = (
    "_*", "*_act", "*_activation", "*_alpha", "architectures", "attn_implementation", "attn_logit_*",
    "attn_type_list_*", "auto_map", "bos_token", "cache_implementation", "chunk_size",
    "chunk_size_feed_forward", "classifier_dropout", "clip_qkv", "*_coef", "compression_config", "*_dropout",
    "dropout", "*_dtype", "dtype", "eos_token", "ep_size", "*_eps", "*_epsilon", "expand", "*_factor",
    "finetuning_task", "full_attn_mod", "hidden_act", "id2label", "indexer_rope_interleave", "*_init*",
    "initial_context_length", "initializer_*", "interleaved", "label2id", "layernorm_*_beta", "*_limit",
    "logits_scaling", "*_loss_*", "mamba_chunk_size", "mamba_hidden_act", "mamba_ssm_cache_dtype",
    "max_seq_len", "mlp_hidden_act", "model_type", "moe_permute_fusion", "moe_router_*",
    "moe_shared_expert_overlap", "mrope_*", "mtp_*", "*_multiplier", "n_group", "no_rope_layer_interval",
    "no_rope_layers", "norm_topk_prob", "norm_type", "num_expert_group", "num_logits_to_keep",
    "original_max_position_embeddings", "output_attentions", "output_hidden_states", "output_router_logits",
    "*_pdrop", "position_embedding_type", "postnorm", "pretraining_tp", "problem_type", "quantization_config",
    "rescale_prenorm_residual", "residual_in_fp32", "return_dict", "rope_*", "*_rope_*", "rope", "*rotary*",
    "router_*", "*_scalar", "scale_embeddings", "scoring_func", "seq_aux", "shared_moe_mode",
    "sliding_window_size*", "*softcapping", "swiglu_limit", "task_specific_params", "time_step_*", "*_token_id",
    "*_token_index", "tokenizer_class", "topk_group", "torch_dtype", "transformers_version",
    "use_bidirectional_attention", "use_cache", "use_flash_attn", "use_grouped_mm", "use_mamba_kernels",
    "use_mtp", "use_parallel_residual",
)  # fmt: skip


def changes_nothing(key: str) -> bool:
    """
    Whether a key is known to change neither parameters nor cache.

    >>> changes_nothing("rope_theta"), changes_nothing("num_attention_heads")
    (True, False)
    """
    return any(fnmatchcase(key, pattern) for pattern in _IGNORED)
