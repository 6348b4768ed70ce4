"""What transformers builds from a written config.json has as many parameters as the profile says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from rlsize.readers.profiles import Catalogue
from rlsize.writers.model_profile import config_of

# One of each family that is shipped; the large ones cost no more than the small ones on the meta device.
NAMES = (
    "llama3.1-8b", "llama3.2-1b", "mistral-7b-v0.3", "phi-4-mini", "qwen2.5-7b", "qwen3-8b", "qwen3-235b-a22b",
    "smollm3-3b", "olmo2-32b", "olmo3-7b", "gemma3-1b", "gemma3-27b",
)  # fmt: skip
COUNT = """
import json, sys, torch
from transformers import AutoConfig, AutoModelForCausalLM

counts = {}
for folder in sys.argv[1:]:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    counts[folder] = sum(parameter.numel() for parameter in model.parameters())
print(json.dumps(counts))
"""


def test_transformers_builds_the_parameters_of_the_profile(engine_python: str, tmp_path: Path) -> None:
    """To the parameter, for every family."""
    catalogue = Catalogue()
    expected: dict[str, int] = {}
    for name in NAMES:
        profile = catalogue.get("model", name)
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config_of(profile)), encoding="utf-8")
        assert profile.computed is not None
        expected[str(folder)] = profile.computed.params
    told = subprocess.run(
        [engine_python, "-c", COUNT, *expected],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-2000:]
    assert json.loads(told.stdout) == expected
