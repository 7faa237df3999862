"""Studies that agree with another one, and those that only have the names of its parameters."""

from dataclasses import replace

import pytest

from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Study
from crosswind.models.tuner.evidence.agreement import Grounds, Profile, agreement_of, place_words
from crosswind.models.tuner.evidence.overlap import common
from crosswind.models.tuner.evidence.program import program_of
from crosswind.models.tuner.space.parameter import domain_from_json

SPACE = {"bucket_mb": {"kind": "ordinal", "values": [1, 2, 4, 8, 16]}, "threads": {"kind": "int", "low": 1, "high": 8}}
STUDY = Study("s1", "mine", SPACE, "step_p50_seconds", "s", 0, 1)
OTHER = replace(STUDY, study_id="s2", name="other")
TRAIN = ("torchrun", "--nproc-per-node", "4", "train.py", "--bucket-mb", "{bucket_mb}", "--threads", "{threads}")


def verdict(own: Study, other: Study) -> tuple[Grounds | None, str]:
    agreement = agreement_of(Profile.of(own), Profile.of(other))
    assert agreement is not None
    return agreement.grounds, agreement.reason


def test_a_study_of_another_program_is_no_source_for_the_names_of_its_parameters() -> None:
    assert verdict(STUDY, OTHER) == (None, "no workload or command in common: only the space is alike")
    described = replace(STUDY, workload="gpt", command=TRAIN)
    assert verdict(described, OTHER) == (None, "no workload or command in common: only the space is alike")


def test_the_workload_decides_where_both_have_one() -> None:
    own = replace(STUDY, workload="gpt", command=TRAIN)
    assert verdict(own, replace(OTHER, workload="gpt", command=("./other",))) == (Grounds.WORKLOAD, "same workload")
    assert verdict(own, replace(OTHER, workload="cnn", command=TRAIN)) == (None, "another workload: cnn")


@pytest.mark.parametrize(
    ("command", "grounds", "reason"),
    [
        (("python", "/home/a/train.py", "--threads", "3", "--bucket-mb=4"), Grounds.COMMAND, "same command"),
        (("srun", "-n", "8", *TRAIN, "--profile"), Grounds.COMMAND, "same command"),
        (("python", "infer.py", "--bucket-mb", "4", "--threads", "2"), None, "another command: infer"),
        (("python", "train.py", "--dose", "3"), None, "another command: train with other options"),
    ],
)
def test_a_command_is_compared_by_its_program_and_the_names_of_its_options(
    command: tuple[str, ...], grounds: Grounds | None, reason: str
) -> None:
    assert verdict(replace(STUDY, command=TRAIN), replace(OTHER, command=command)) == (grounds, reason)


@pytest.mark.parametrize("name", ["mine-2", "Mine_v3", "mine 10", "mine"])
def test_without_a_program_the_name_but_for_its_number_can_agree(name: str) -> None:
    assert verdict(STUDY, replace(OTHER, name=name)) == (Grounds.SPACE, "same objective, values and name")


def test_without_a_program_an_entry_of_the_details_can_agree_but_no_template_and_no_place() -> None:
    own = replace(STUDY, system="here", world_size=8, details={"model": "llama-7b", "template": "ddp"})
    only_place = replace(OTHER, system="here", world_size=8, details={"model": "bert", "template": "ddp"})
    assert verdict(own, only_place)[0] is None
    same_model = replace(only_place, details={"model": "llama-7b"})
    assert verdict(own, same_model) == (Grounds.SPACE, "same objective, values and model")


def test_without_a_program_the_same_names_with_other_values_are_no_source() -> None:
    wider = {**SPACE, "threads": {"kind": "int", "low": 1, "high": 64}}
    assert verdict(STUDY, replace(OTHER, name="mine-2", space=wider)) == (
        None,
        "no workload or command in common, and other values of threads",
    )
    bound = {"parameters": SPACE, "constraints": ["threads * bucket_mb <= 64"]}
    assert verdict(STUDY, replace(OTHER, name="mine-2", space=bound))[1].endswith("other values of constraints")
    of_other_ranks = [{"parameters": SPACE, "facts": {"ranks": ranks}} for ranks in (4, 8)]
    own, other = (replace(STUDY, space=space) for space in of_other_ranks)
    assert verdict(own, replace(other, study_id="s2", name="mine-2"))[1].endswith("other values of facts")


@pytest.mark.parametrize("change", [{"objective": "run_seconds"}, {"direction": "maximise"}])
def test_another_objective_is_no_source_even_of_the_same_workload(change: dict[str, str]) -> None:
    own = replace(STUDY, workload="gpt")
    other = replace(OTHER, workload="gpt", **change)  # type: ignore[arg-type]
    assert verdict(own, other)[1].startswith("another objective: ")


def test_a_named_study_is_a_source_whatever_it_measured_if_it_has_the_parameters() -> None:
    own = replace(STUDY, workload="gpt", sources=("other",))
    other = replace(OTHER, workload="cnn", objective="run_seconds")
    assert verdict(own, other) == (Grounds.NAMED, "named, for another objective: run_seconds")
    only_threads = replace(other, space={"threads": SPACE["threads"]})
    assert verdict(own, only_threads) == (None, "1 of 2 parameters missing: bucket_mb")


def test_a_study_without_a_common_parameter_is_not_even_considered() -> None:
    other = replace(OTHER, space={"lr": {"kind": "float", "low": 0.1, "high": 1}})
    assert agreement_of(Profile.of(STUDY), Profile.of(other)) is None


def test_a_parameter_under_another_unit_is_the_same_parameter() -> None:
    kib = {"bucket_kib": {"kind": "ordinal", "values": [1024, 2048]}}
    mib = {"bucket_mib": {"kind": "ordinal", "values": [1, 2]}}
    own, other = replace(STUDY, space=mib, workload="gpt"), replace(OTHER, space=kib, workload="gpt")
    assert verdict(own, other) == (Grounds.WORKLOAD, "same workload")


def test_a_nearer_place_and_scale_come_first() -> None:
    own = Profile.of(replace(STUDY, workload="gpt", system="here", world_size=8))
    places = [("there", 8), ("here", 64), ("here", 16), ("here", 8)]
    others = [Profile.of(replace(OTHER, workload="gpt", system=system, world_size=size)) for system, size in places]
    agreements = [agreement_of(own, other) for other in others]
    order = sorted(range(4), key=lambda place: agreements[place].order)  # type: ignore[union-attr]
    assert order == [3, 2, 1, 0]


def test_the_newest_run_says_what_the_study_does_not() -> None:
    run = Run("r1", "gpt", "there", RunState.COMPLETED, 16, command=("python", "train.py", "--lr", "1"))
    profile = Profile.of(replace(STUDY, system="here"), run, {"here": {"hardware.gemm": "EPYC"}})
    assert (profile.workload, profile.program) == ("gpt", program_of(["train.py", "--lr=2"]))
    expected = {"workload": "gpt", "system": "here", "world_size": 16.0, "hardware.gemm": "EPYC"}
    assert profile.features == expected
    assert place_words(profile.features) == "system here at 16 ranks"


@pytest.mark.parametrize(
    ("own", "other", "share"),
    [
        ({"kind": "int", "low": 1, "high": 8}, {"kind": "int", "low": 1, "high": 16}, 0.5),
        ({"kind": "int", "low": 1, "high": 2}, {"kind": "ordinal", "values": [1.0, 2.0]}, 1.0),
        ({"kind": "boolean"}, {"kind": "ordinal", "values": [0, 1]}, 0.0),
        ({"kind": "float", "low": 1, "high": 100, "log": True}, {"kind": "float", "low": 10, "high": 100}, 0.5),
        ({"kind": "float", "low": 0, "high": 1}, {"kind": "float", "low": 2, "high": 3}, 0.0),
        ({"kind": "float", "low": 0, "high": 1}, {"kind": "categorical", "values": ["a"]}, 0.0),
        ({"kind": "float", "low": 1, "high": 1}, {"kind": "float", "low": 1, "high": 1}, 1.0),
    ],
)
def test_the_share_of_common_values(own: dict[str, object], other: dict[str, object], share: float) -> None:
    assert common(domain_from_json(own), domain_from_json(other)) == pytest.approx(share)
