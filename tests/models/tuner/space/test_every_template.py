import math
from collections.abc import Mapping

import pytest

from crosswind.models.tuner.space.expression import Expression
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.study_file import StudyFile
from crosswind.models.tuner.templates import TEMPLATES, Template

LLAMA = {"layers": 32, "hidden": 4096, "heads": 32, "sequence": 2048, "vocabulary": 32000, "device": "A100-SXM-80GB"}
# The rest of a study file besides the template: the least, and all that the template's constraints can use.
FACTS: Mapping[str, Mapping[str, object]] = {
    "ddp": {"ranks": 4, "global_batch": 256, "batch_max": 64, "cores": 8},
    "fsdp_zero": {"ranks": 8, "global_batch": 64},
    "parallel_degrees": {"ranks": 64, "ranks_a_node": 8, "global_batch": 512},
    "power": {"power_min_watts": 100, "power_max_watts": 400, "clock_max_mhz": 1410},
    "nccl": {},
    "gloo": {"cores": 4},
    "checkpointing_offload": {"layers": 32},
    "sparsity": {"accuracy_floor": 0.9},
}
EVERY = pytest.mark.parametrize("template", TEMPLATES, ids=[template.name for template in TEMPLATES])


def study(template: Template, *, all_facts: bool) -> StudyFile:
    facts = {name: value for name, value in FACTS[template.name].items() if all_facts or name in template.needs}
    content = {"name": "t", "template": template.name, "facts": facts}
    if all_facts and any("fits_memory" in text for text in template.constraints):
        content["transformer"] = LLAMA
        content["facts"] = {name: value for name, value in facts.items() if name not in LLAMA}
    return StudyFile.from_json(content)


@EVERY
@pytest.mark.parametrize("all_facts", [True, False])
def test_a_template_is_a_space_with_valid_configurations(template: Template, all_facts: bool) -> None:
    space = Space.from_json(study(template, all_facts=all_facts).space)
    drawn = space.random(20, seed=0)
    assert len(drawn) == 20
    assert all(space.contains(configuration) for configuration in drawn)
    assert space.coordinates(drawn).shape[0] == 20
    assert len(space.neighbours(drawn[0], 2, seed=0)) > 1


@EVERY
def test_every_constraint_of_a_template_is_used_when_all_facts_are_known(template: Template) -> None:
    with_all = Space.from_json(study(template, all_facts=True).space)
    assert [constraint.text for constraint in with_all.requirements.constraints] == list(template.constraints)
    with_few = Space.from_json(study(template, all_facts=False).space)
    assert with_all.size <= with_few.size < math.inf


@EVERY
def test_a_template_describes_each_parameter_in_a_line(template: Template) -> None:
    space = Space.from_json(study(template, all_facts=False).space)
    assert space.descriptions.keys() == template.parameters.keys()
    assert all("\n" not in line for line in (*space.descriptions.values(), template.description))
    assert all(Expression.parse(text).names for text in template.constraints)


def test_templates_have_names_of_their_own() -> None:
    assert len({template.name for template in TEMPLATES}) == len(TEMPLATES) == 8


def test_degrees_multiply_to_the_ranks_within_a_node_and_fit_the_memory() -> None:
    template = next(candidate for candidate in TEMPLATES if candidate.name == "parallel_degrees")
    space = Space.from_json(study(template, all_facts=True).space)
    assert space.is_enumerable
    for configuration in space.configurations():
        assert int(configuration["dp"]) * int(configuration["tp"]) * int(configuration["pp"]) == 64
        assert int(configuration["tp"]) <= 8
        assert int(configuration["micro_batch"]) * int(configuration["micro_batches"]) * int(configuration["dp"]) == 512
        assert ("schedule" in configuration) is (configuration["pp"] != 1)
        assert ("interleave" in configuration) is (configuration.get("schedule") == "interleaved")
    kinds = {(split["tp"], split["pp"]) for split in space.configurations()}
    assert (1, 1) not in kinds  # 110 GB of weights and optimizer on each device
    assert (8, 1) in kinds


def test_the_sparsity_template_keeps_the_accuracy_above_its_floor() -> None:
    template = next(candidate for candidate in TEMPLATES if candidate.name == "sparsity")
    assert study(template, all_facts=True).limits == ("accuracy >= 0.9",)
