"""Units and limits that several quantities have."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.quantities.row import Word

TOKEN_RATE_SPREAD = Quantity("token/s", spread=True)
TOKENS = Quantity("token")
TOKENS_OR_NONE = Quantity("token", least=0.0)
SECONDS = Quantity("s")
SECONDS_OR_NONE = Quantity("s", least=0.0)
SECONDS_SPREAD = Quantity("s", spread=True)
COUNT = Quantity("count", whole=True)
COUNT_OR_NONE = Quantity("count", least=0.0, whole=True)
POSITIVE = Quantity("count")
SHARE = Quantity("1", least=0.0, most=1.0)
PART = Quantity("1", most=1.0)
CV = Quantity("1", least=0.0, most=20.0)
STALENESS = Quantity("count", least=0.0)
PARAMS = Quantity("param")
DOLLARS = Quantity("usd", least=0.0)
DTYPE = Word(("fp32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"))
WEIGHT_DTYPE = Word((*DTYPE.known, "nf4"))
