"""Ten published configurations counted by hand: parameters, and bytes that one token keeps in the cache."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rlsize.estimates.model_size import model_size
from rlsize.readers.profiles import Catalogue


class Hand(NamedTuple):
    """What a person gets from the configuration with pencil and paper."""

    model: str
    params: int
    kv_bytes: int
    sliding_bytes: int = 0


def attention(hidden: int, heads: int, kv_heads: int, head_dim: int) -> int:
    """Weights of query, key, value and output projections."""
    return hidden * head_dim * (2 * heads + 2 * kv_heads)


def gated(hidden: int, inner: int) -> int:
    """Weights of gate, up and down."""
    return 3 * hidden * inner


LLAMA_8B = 32 * (attention(4096, 32, 8, 128) + gated(4096, 14336) + 2 * 4096) + 4096 + 2 * 128256 * 4096
LLAMA_1B = 16 * (attention(2048, 32, 8, 64) + gated(2048, 8192) + 2 * 2048) + 2048 + 128256 * 2048
QWEN25_7B = (
    28 * (attention(3584, 28, 4, 128) + (28 + 2 * 4) * 128 + gated(3584, 18944) + 2 * 3584) + 3584 + 2 * 152064 * 3584
)
QWEN3_32B = 64 * (attention(5120, 64, 8, 128) + 2 * 128 + gated(5120, 25600) + 2 * 5120) + 5120 + 2 * 151936 * 5120
PHI_4 = 40 * (attention(5120, 40, 10, 128) + gated(5120, 17920) + 2 * 5120) + 5120 + 2 * 100352 * 5120
# Text tokens only: the multimodal checkpoint pads its embedding by 64 rows.
GEMMA3_27B = 62 * (attention(5376, 32, 16, 128) + 2 * 128 + gated(5376, 21504) + 4 * 5376) + 5376 + 262144 * 5376
QWEN3_30B = (
    48 * (attention(2048, 32, 4, 128) + 2 * 128 + 128 * gated(2048, 768) + 128 * 2048 + 2 * 2048)
    + 2048
    + 2 * 151936 * 2048
)
GPT_OSS_20B = (
    24
    * (
        attention(2880, 64, 8, 64)
        + (64 + 2 * 8) * 64  # biases of query, key and value
        + 2880  # bias of the output
        + 64  # sinks
        + 32 * (gated(2880, 2880) + 2 * 2880 + 2880)  # experts with biases
        + 32 * 2880  # router
        + 32  # its bias
        + 2 * 2880
    )
    + 2880
    + 2 * 201088 * 2880
)
_LATENT = (
    7168 * 1536  # query, compressed
    + 1536  # its norm
    + 1536 * 128 * (128 + 64)  # query, expanded
    + 7168 * (512 + 64)  # key and value, compressed, with the rotary key
    + 512  # their norm
    + 512 * 128 * (128 + 128)  # keys and values, expanded
    + 128 * 128 * 7168  # output
)
DEEPSEEK_V3 = (
    61 * (_LATENT + 2 * 7168)
    + 3 * gated(7168, 18432)
    + 58 * (256 * gated(7168, 2048) + gated(7168, 2048) + 256 * 7168 + 256)
    + 7168
    + 2 * 129280 * 7168
)
_DELTANET = 2048 * (2 * 2048 + 2 * 4096 + 2 * 32) + 4 * (2 * 2048 + 4096) + 2 * 32 + 128 + 4096 * 2048
QWEN3_NEXT = (
    12 * (attention(2048, 16, 2, 256) + 2048 * 16 * 256 + 2 * 256)  # with an output gate
    + 36 * _DELTANET
    + 48 * (512 * gated(2048, 512) + gated(2048, 512) + 2048 + 512 * 2048 + 2 * 2048)
    + 2048
    + 2 * 151936 * 2048
)

HANDS = (
    Hand("llama3.1-8b", LLAMA_8B, 2 * 32 * 8 * 128 * 2),
    Hand("llama3.2-1b", LLAMA_1B, 2 * 16 * 8 * 64 * 2),
    Hand("qwen2.5-7b", QWEN25_7B, 2 * 28 * 4 * 128 * 2),
    Hand("qwen3-32b", QWEN3_32B, 2 * 64 * 8 * 128 * 2),
    Hand("phi-4", PHI_4, 2 * 40 * 10 * 128 * 2),
    Hand("gemma3-27b", GEMMA3_27B, 2 * 10 * 16 * 128 * 2, 2 * 52 * 16 * 128 * 2),
    Hand("qwen3-30b-a3b", QWEN3_30B, 2 * 48 * 4 * 128 * 2),
    Hand("gpt-oss-20b", GPT_OSS_20B, 2 * 12 * 8 * 64 * 2, 2 * 12 * 8 * 64 * 2),
    Hand("deepseek-v3", DEEPSEEK_V3, 61 * (512 + 64) * 2),
    Hand("qwen3-next-80b-a3b", QWEN3_NEXT, 2 * 12 * 2 * 256 * 2),
)


@pytest.mark.parametrize("hand", HANDS, ids=lambda hand: hand.model)
def test_counts_agree_with_the_published_configuration(hand: Hand) -> None:
    """Parameters to one, bytes per token to one, from the dimensions of config.json."""
    size = model_size(Catalogue().get("model", hand.model))
    assert size.params.number == hand.params
    assert size.kv_bytes_per_token.number == hand.kv_bytes
    assert size.sliding_bytes_per_token.number == hand.sliding_bytes


@pytest.mark.parametrize(
    ("params", "published"),
    [
        (LLAMA_8B, 8_030_261_248),
        (QWEN25_7B, 7_615_616_512),
        (QWEN3_32B, 32_762_123_264),
        (QWEN3_30B, 30_532_122_624),
        (GPT_OSS_20B, 20_914_757_184),
    ],
)
def test_the_hand_counts_are_those_of_the_published_files(params: int, published: int) -> None:
    """The counts that Hugging Face shows for the weight files."""
    assert params == published
