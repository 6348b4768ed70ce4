"""Units and limits that several quantities, and facts, have."""

from __future__ import annotations

from rlsize.facts.fields import Quantity

TOKEN_RATE_SPREAD = Quantity("token/s", spread=True)
TOKEN_RATE_OR_NONE = Quantity("token/s", least=0)
TOKENS = Quantity("token")
TOKENS_OR_NONE = Quantity("token", least=0)
WHOLE_TOKENS = Quantity("token", whole=True)
SECONDS = Quantity("s")
SECONDS_OR_NONE = Quantity("s", least=0)
SECONDS_SPREAD = Quantity("s", spread=True)
COUNT = Quantity("count", whole=True)
COUNT_OR_NONE = Quantity("count", least=0, whole=True)
POSITIVE = Quantity("count")
AMOUNT_OR_NONE = Quantity("count", least=0)
RATIO = Quantity("1", least=0)
SHARE = Quantity("1", least=0, most=1)
PART = Quantity("1", most=1)
CV = Quantity("1", least=0, most=20)
PARAMS = Quantity("param")
BYTES = Quantity("B")
WHOLE_BYTES = Quantity("B", least=0, whole=True)
BANDWIDTH = Quantity("B/s")
FLOP_RATE = Quantity("FLOP/s")
DOLLARS = Quantity("usd", least=0)
