"""What GPUs cost; no price is ever assumed."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import DOLLARS, SHARE
from rlsize.quantities.row import Row, Text

_PRICE = Quantity("usd", least=0.0, spread=True)

ROWS = (
    Row("gpu_hour_usd", _PRICE, "Dollars per GPU-hour, both pools.", "prices.gpu_hour", "--gpu-hour"),
    Row(
        "rollout_gpu_hour_usd",
        _PRICE,
        "Dollars per rollout GPU-hour, where it differs (preemptible).",
        "prices.rollout_gpu_hour",
        "--rollout-gpu-hour",
    ),
    Row(
        "trainer_gpu_hour_usd",
        _PRICE,
        "Dollars per trainer GPU-hour, where it differs.",
        "prices.trainer_gpu_hour",
        "--trainer-gpu-hour",
    ),
    Row("price", Text(), "A price profile, in place of the numbers.", "prices.profile", "--"),
    Row("preemptible_fraction", SHARE, "Share of the rollout GPUs that is preemptible, 0 to 1.", flag="--"),
    Row("preemptible_gpu_hour_usd", DOLLARS, "Dollars per GPU-hour of those.", flag="--preemptible-gpu-hour"),
    Row(
        "lost_fraction",
        Quantity("1", least=0.0, most=0.99),  # of nothing useful no price can be told
        "Share of their time that preemption throws away.",
        flag="--",
    ),
    Row("price_as_of", Text("DATE"), "Date of the price.", "prices.as_of", "--as-of"),
    Row("price_region", Text("TEXT"), "Region of the price.", "prices.region", "--region"),
)
