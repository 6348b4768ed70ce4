"""Words that several quantities take."""

from __future__ import annotations

from rlsize.quantities.row import Word

DTYPE = Word(("fp32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"))
WEIGHT_DTYPE = Word((*DTYPE.known, "nf4"))
