import math
from collections.abc import Mapping

import pytest

from crosswind.models.tuner import Space
from crosswind.models.tuner.expression import Expression
from crosswind.models.tuner.study_file import StudyFile
from crosswind.models.tuner.templates import TEMPLATES, Template

LLAMA = {"layers": 32, "hidden": 4096, "heads": 32, "sequence": 2048, "vocabulary": 32000, "device": "A100-SXM-80GB"}
# What a study says beside the name of its template: the least, and all that the template's constraints can use.
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
EVERY = pytest.mark.parametrize("template", TEMPLATES, ids=[each.name for each in TEMPLATES])


def study(template: Template, *, all_facts: bool) -> StudyFile:
    facts = {name: value for name, value in FACTS[template.name].items() if all_facts or name in template.needs}
    told = {"name": "t", "template": template.name, "facts": facts}
    if all_facts and any("fits_memory" in text for text in template.constraints):
        told["transformer"] = LLAMA
        told["facts"] = {name: value for name, value in facts.items() if name not in LLAMA}
    return StudyFile.from_json(told)


@EVERY
@pytest.mark.parametrize("all_facts", [True, False])
def test_a_template_is_a_space_with_valid_configurations(template: Template, all_facts: bool) -> None:
    space = Space.from_json(study(template, all_facts=all_facts).space)
    found = space.random(20, seed=0)
    assert len(found) == 20
    assert all(space.contains(each) for each in found)
    assert space.coordinates(found).shape[0] == 20
    assert len(space.neighbours(found[0], 2, seed=0)) > 1


@EVERY
def test_every_constraint_of_a_template_is_used_when_all_facts_are_known(template: Template) -> None:
    with_all = Space.from_json(study(template, all_facts=True).space)
    assert [each.text for each in with_all.requirements.constraints] == list(template.constraints)
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
    template = next(each for each in TEMPLATES if each.name == "parallel_degrees")
    space = Space.from_json(study(template, all_facts=True).space)
    assert space.is_enumerable
    for each in space.configurations():
        assert int(each["dp"]) * int(each["tp"]) * int(each["pp"]) == 64
        assert int(each["tp"]) <= 8
        assert int(each["micro_batch"]) * int(each["micro_batches"]) * int(each["dp"]) == 512
        assert ("schedule" in each) is (each["pp"] != 1)
        assert ("interleave" in each) is (each.get("schedule") == "interleaved")
    kinds = {(each["tp"], each["pp"]) for each in space.configurations()}
    assert (1, 1) not in kinds  # 110 GB of weights and optimizer on each device
    assert (8, 1) in kinds


def test_the_sparsity_template_keeps_the_accuracy_above_its_floor() -> None:
    template = next(each for each in TEMPLATES if each.name == "sparsity")
    assert study(template, all_facts=True).limits == ("accuracy >= 0.9",)
