"""JSON: one object, flat results in base units, never NaN."""

from __future__ import annotations

import json

from rlsize.reports.report import Report
from rlsize.writers.json_document import json_text


def test_the_document_has_the_promised_shape(plain: Report) -> None:
    """Keys of every JSON answer, with the provenance, the equation and the missing flag of each result."""
    document = json.loads(json_text(plain, "abc"))
    assert list(document)[:9] == [
        "schema_version",
        "command",
        "rlsize_version",
        "facts_digest",
        "inputs",
        "results",
        "rows",
        "explain",
        "warnings",
    ]
    assert document["results"] == {
        "required_tokens_per_second": 150.0,
        "cost_per_step_usd": None,
        "matched_instances": 2,
    }
    assert document["inputs"] == {"consumption_tokens_per_second": 100.0}
    explained = document["explain"]["required_tokens_per_second"]
    assert explained["equation"] == "matching.required_supply"
    assert explained["formula"] == "R = C w"
    assert explained["inputs"] == {"consumption": 100.0, "tokens_generated_per_trained_token": 1.5}
    assert document["explain"]["cost_per_step_usd"]["reason"] == "needs --gpu-hour"
    assert document["explain"]["matched_instances"]["band"] == [1.0, 3.0]
    assert document["explain"]["consumption_tokens_per_second"]["source"] == "--consume"
    assert document["rows"]["neighbours"][0] == {"instances": 1, "idle_fraction": 0.25, "cost_usd": None}


def test_what_json_cannot_say_is_null_with_a_reason(infinite: Report) -> None:
    """Neither NaN nor Infinity leaves the program."""
    text = json_text(infinite, "abc")
    assert "NaN" not in text.replace("nan is", "")
    assert "Infinity" not in text
    document = json.loads(text)
    assert document["results"] == {"a_seconds": None, "b_seconds": None}
    assert "not a finite number" in document["explain"]["a_seconds"]["reason"]
