"""Fixtures for tests against a real engine; skipped where there is none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False,
    "hidden_act": "silu", "torch_dtype": "bfloat16", "attention_bias": False, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


@pytest.fixture(scope="session")
def engine_python() -> str:
    """A Python with torch, transformers and vLLM."""
    found = os.environ.get("RLSIZE_ENGINE_PYTHON", "")
    if not found:
        pytest.skip("RLSIZE_ENGINE_PYTHON names no Python with vLLM")
    return found


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories with the configuration of a tiny model."""
    folder = tmp_path_factory.mktemp("qwen3")
    (folder / "config.json").write_text(json.dumps(QWEN3), encoding="utf-8")
    return {"qwen3": folder}
