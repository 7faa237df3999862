import json
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.study_file import StudyFile

YAML = """
name: buckets
objective: samples / run_seconds
direction: maximise
unit: samples/s
seed: 7
parameters:
  bucket_mb: {kind: float, low: 1, high: 64, log: true}
  threads: {kind: ordinal, values: [1, 2, 4], description: of a rank}
  pinned: {kind: boolean, when: threads > 1}
constraints:
  - bucket_mb * threads < room_mb
facts: {room_mb: 128}
limits: [memory_bytes < room_mb * 1e6]
budget: {trials: 20, hours: 1.5}
command: torchrun train.py --bucket {bucket_mb}
details: {workload: nanogpt-124m}
"""
TOML = """
name = "buckets"
objective = "samples / run_seconds"
direction = "maximise"
unit = "samples/s"
seed = 7
constraints = ["bucket_mb * threads < room_mb"]
limits = ["memory_bytes < room_mb * 1e6"]
command = "torchrun train.py --bucket {bucket_mb}"
[parameters]
bucket_mb = {kind = "float", low = 1, high = 64, log = true}
threads = {kind = "ordinal", values = [1, 2, 4], description = "of a rank"}
pinned = {kind = "boolean", when = "threads > 1"}
[facts]
room_mb = 128
[budget]
trials = 20
hours = 1.5
[details]
workload = "nanogpt-124m"
"""
SMALL = {"name": "s", "parameters": {"threads": {"kind": "ordinal", "values": [1, 2]}}}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_toml_and_json_say_the_same(tmp_path: Path) -> None:
    read = StudyFile.read(written(tmp_path, "a.yaml", YAML))
    assert StudyFile.read(written(tmp_path, "a.toml", TOML)) == read
    assert StudyFile.read(written(tmp_path, "a.json", json.dumps(read.as_json()))) == read
    assert StudyFile.from_json(read.as_json()) == read
    assert (read.name, read.objectives, read.direction) == ("buckets", ("samples / run_seconds",), "maximise")
    assert (read.trials, read.hours, read.seed, read.unit) == (20, 1.5, 7, "samples/s")
    assert read.command == ("torchrun train.py --bucket {bucket_mb}",)
    assert read.limits == ("memory_bytes < 128 * 1e6",)
    assert Space.from_json(read.space).requirements.constraints[0].text == "bucket_mb * threads < room_mb"


def test_repeats_are_a_share_of_the_budget() -> None:
    read = StudyFile.from_json({**SMALL, "budget": {"trials": 9, "repeats": 0.25}})
    assert (read.repeats, read.study("id", 5).repeats) == (0.25, 0.25)
    assert StudyFile.from_json(read.as_json()) == read


def test_a_service_gets_the_facts_of_the_file(tmp_path: Path) -> None:
    study = StudyFile.read(written(tmp_path, "a.yaml", YAML)).study("id", 5)
    assert (study.study_id, study.name, study.created_ns, study.seed) == ("id", "buckets", 5, 7)
    assert (study.objective, study.unit, study.trials_max) == ("samples / run_seconds", "samples/s", 20)
    assert study.as_json()["details"] == {
        "workload": "nanogpt-124m",
        "direction": "maximise",
        "limits": ["memory_bytes < 128 * 1e6"],
        "hours": 1.5,
        "command": ["torchrun train.py --bucket {bucket_mb}"],
    }
    assert Space.from_json(study.space).contains({"bucket_mb": 3.5, "threads": 2, "pinned": True})
    assert json.loads(json.dumps(dict(study.space))) == study.space


def test_little_needs_to_be_said(tmp_path: Path) -> None:
    content = {"parameters": SMALL["parameters"]}
    read = StudyFile.read(written(tmp_path, "threads.json", json.dumps(content)))
    assert (read.name, read.objectives, read.direction, read.trials) == (
        "threads",
        ("step_p50_seconds",),
        "minimise",
        None,
    )
    assert read.study("i", 0).as_json()["details"] == {}


def test_the_direction_may_stand_before_the_objective() -> None:
    read = StudyFile.from_json({**SMALL, "objective": "maximize throughput"})
    assert (read.objectives, read.direction) == (("throughput",), "maximise")


def test_several_objectives_are_traded_off() -> None:
    read = StudyFile.from_json({**SMALL, "objective": ["maximise samples / seconds", "energy_joules"]})
    study = read.study("i", 0)
    assert (study.objective, study.direction) == ("samples / seconds", "maximise")
    assert study.objectives == ("maximise samples / seconds", "energy_joules")
    assert StudyFile.from_json(read.as_json()) == read


def test_facts_are_filled_into_limits_and_objectives_but_not_into_texts_or_longer_names() -> None:
    facts = {"cap": 300, "bf16": 2}
    limit = "power_cap + ('bf16' in ('x', 'bf16')) <= cap * 1e2"
    read = StudyFile.from_json({**SMALL, "facts": facts, "objective": "energy / cap", "limits": [limit]})
    assert read.objectives == ("energy / 300",)
    assert read.limits == ("power_cap + ('bf16' in ('x', 'bf16')) <= 300 * 1e2",)


def test_a_template_is_changed_by_what_the_file_says() -> None:
    content = {
        "name": "t",
        "template": "ddp",
        "parameters": {
            "threads": {"kind": "ordinal", "values": [1, 2]},
            "compile": None,
            "own": {"kind": "boolean"},
        },
        "facts": {"ranks": 4, "global_batch": 256},
        "constraints": ["threads <= workers or workers == 0"],
    }
    read = StudyFile.from_json(content)
    space = Space.from_json(read.space)
    assert "compile" not in space.domains
    assert space.domains["threads"].values() == (1, 2)
    assert list(space.domains)[-1] == "own"
    texts = [constraint.text for constraint in space.requirements.constraints]
    assert texts == ["batch * accumulation * ranks == global_batch", "threads <= workers or workers == 0"]
    assert all(
        int(configuration["batch"]) * int(configuration["accumulation"]) == 64
        for configuration in space.configurations()
    )
    assert replace(StudyFile.from_json(read.as_json()), template="ddp") == read


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"nme": "x"}, "there is no field 'nme', expected name, template, objective"),
        ({"name": ""}, "name is '', expected a text"),
        ({"name": 3}, "name is 3, expected a text"),
        ({"objective": 3}, "objective is None, expected a text"),
        ({"objective": []}, "objective is empty"),
        ({"objective": "1 + 1"}, "names no outcome"),
        ({"objective": "step.seconds()"}, "it calls|it holds"),
        ({"objective": ["a", "a"]}, "objective 'a' stands 2 times"),
        ({"objective": ["a", "b"], "direction": "maximise"}, "with several objectives"),
        ({"direction": "up"}, "direction is 'up', expected minimise or maximise"),
        ({"direction": []}, r"direction is \[\], expected minimise"),
        ({"unit": 3}, "unit is 3"),
        ({"parameters": []}, r"parameters is \[\], expected an object"),
        ({"parameters": {}}, "no parameters"),
        ({"parameters": {"t": {"kind": "int", "low": 3, "high": 1}}}, "parameter t: low is 3 and high is 1"),
        ({"parameters": {"t": None}}, "parameter t: it is None, expected an object"),
        ({"constraints": ["threads > 9"]}, "'threads > 9' leaves no configuration"),
        ({"constraints": [1]}, "constraints is 1, expected a text"),
        ({"constraints": {"a": 1}}, "constraints is None"),
        ({"limits": ["power"]}, "limit 'power' compares by nothing"),
        ({"limits": ["1 < 2"]}, "names no outcome"),
        ({"budget": 20}, "budget is 20, expected trials, hours and repeats"),
        ({"budget": {"repeats": 0.6}}, "budget: repeats is 0.6, expected a number above 0 up to 0.5"),
        ({"budget": {"repeats": "often"}}, "budget: repeats is 'often'"),
        (
            {"budget": {"repeats": 0.2}, "limits": ["power_watts < 3"]},
            "budget: repeats is 0.2, expected none beside limits",
        ),
        ({"budget": {"trials": 0}}, "budget: trials is 0, expected a whole number from 1"),
        ({"budget": {"trials": True}}, "budget: trials is True"),
        ({"budget": {"hours": -1}}, "budget: hours is -1, expected a number above 0"),
        ({"budget": {"hours": float("nan")}}, "budget: hours is nan"),
        ({"budget": {"days": 1}}, "budget has no field 'days'"),
        ({"seed": -1}, "seed is -1, expected a whole number from 0"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"template": "dpp"}, "template is 'dpp', expected one of ddp, fsdp_zero"),
        ({"template": "parallel_degrees"}, "facts: ranks is missing, which template parallel_degrees needs: how many"),
        ({"details": [1]}, "details is"),
        ({"details": {"x": object}}, "details is .*, expected values that JSON has"),
        ({"transformer": 3}, "transformer is 3, expected an object"),
    ],
)
def test_a_fault_is_named_by_field_value_and_expectation(change: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        StudyFile.from_json({**SMALL, **change})


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "{", "cannot be read"),
        ("a.json", '{"name": "a", "name": "b"}', "'name' stands twice"),
        ("a.json", "[1]", "expected fields such as name"),
        ("a.yaml", "a: [1", "cannot be read"),
        ("a.yaml", "name: a\nname: b", "'name' stands twice"),
        ("a.yaml", "a: !!python/object/apply:os.system [id]", "cannot be read"),
        ("a.yaml", "a: &x [1, 2]\nb: [*x, *x]", "anchors that are used again"),
        ("a.yaml", "", "expected fields"),
        ("a.yaml", "3: x", "expected fields"),
        ("a.yaml", "[" * 2000, "cannot be read"),
        ("a.toml", "a = ", "cannot be read"),
        ("a.toml", "a = 1\na = 2", "cannot be read"),
        ("a.toml", " " * 1_100_000, "expected a small file"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(MalformedError, match=f"{name}: .*{says}"):
        StudyFile.read(written(tmp_path, name, text))


def test_a_missing_file_or_one_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"nope.yaml: No such file"):
        StudyFile.read(tmp_path / "nope.yaml")
    tmp_path.joinpath("d.json").mkdir()
    with pytest.raises(UnavailableError, match="Is a directory"):
        StudyFile.read(tmp_path / "d.json")
    with pytest.raises(
        InvalidInputError, match=r"a.ini: the ending is '.ini', expected one of .yaml, .yml, .json, .toml"
    ):
        StudyFile.read(written(tmp_path, "a.ini", ""))
    tmp_path.joinpath("a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MalformedError, match=r"a.json: cannot be read"):
        StudyFile.read(tmp_path / "a.json")
    with pytest.raises(InvalidInputError, match=r"b.yaml: seed is 'x', expected a whole number"):
        StudyFile.read(written(tmp_path, "b.yaml", "seed: x\nparameters: {a: {kind: boolean}}"))
