"""What a saved plan or observation says of an allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.readers.yaml_documents import Document


def saved_figures(document: Document, kind: str) -> dict[str, Figure]:
    """
    The numbers and words of a plan or observation by key; what a plan places goes before what it was worked out from.

    Raises:
        InputError: What is wrong with the file.
    """
    return _of_plan(document) if kind == "plan" else _of_observation(document)


def _of_plan(document: Document) -> dict[str, Figure]:
    from rlsize.readers.plans import plan_of

    plan = plan_of(document)
    found: dict[str, Figure] = {}
    for part, figures in (("inputs", plan.inputs), ("placement", plan.placement)):
        for key, figure in figures.items():
            if figure.value is not None:
                where = document.where((part, key))
                found[key] = Figure(key=key, value=figure.value, provenance=figure.provenance, source=where)
    return found


def _of_observation(document: Document) -> dict[str, Figure]:
    from rlsize.readers.observations import observation_of

    observation = observation_of(document)
    recorded = observation.allocation
    words = {
        "instances": recorded.rollout_instances,
        "gpus_per_instance": recorded.gpus_per_instance,
        "rollout_gpus": recorded.rollout_gpus,
        "trainer_gpus": recorded.trainer_gpus,
    }
    found = {
        key: Figure(key=key, value=value, provenance="measured", source=document.where(("allocation", key)))
        for key, value in words.items()
        if value is not None
    }
    if observation.engine:
        where = document.where(("engine",))
        found["engine"] = Figure(key="engine", value=observation.engine, provenance="measured", source=where)
    return found
