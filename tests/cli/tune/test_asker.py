"""Names of askers: jobs that are requeued keep theirs, processes side by side get one each; answers of rank 0."""

from pathlib import Path

import pytest

from crosswind.cli.verbs.tune.asker import asking_process, holder, job_key, restarts
from crosswind.cli.verbs.tune.execution.ranks import Answer, answer_file, leave, rank_of_step, wait_for_answer
from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError

ELEMENT = {"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "2"}
STEP = {"SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}


def test_an_element_of_an_array_goes_by_its_number() -> None:
    assert (job_key(ELEMENT), job_key({"SLURM_JOB_ID": "12"}), job_key({})) == ("10_2", "12", None)
    assert (restarts({}), restarts({"SLURM_RESTART_COUNT": "3"})) == (0, 3)


def test_processes_of_one_job_are_told_apart_and_a_restart_takes_the_same_slot() -> None:
    with asking_process(60.0, ELEMENT) as first, asking_process(60.0, ELEMENT) as second:
        assert (first.job, second.job) == ("10_2/0", "10_2/1")
    with asking_process(60.0, ELEMENT | {"SLURM_RESTART_COUNT": "1"}) as again:
        assert again.job == first.job
        assert again.owner != first.owner


def test_outside_of_jobs_nobody_is_the_same_job() -> None:
    with asking_process(60.0, {}) as asking:
        assert asking.job is None
    assert holder(60.0, "gpu0", {}).job is None
    assert holder(60.0, "gpu0", ELEMENT).job == "10_2/gpu0"


def test_a_batch_script_is_no_step_and_a_step_of_one_task_has_no_others() -> None:
    assert rank_of_step({"SLURM_JOB_ID": "12", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"}) is None
    assert rank_of_step(STEP) == 1
    assert rank_of_step(STEP | {"SLURM_STEP_NUM_TASKS": "1"}) is None
    assert rank_of_step({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}) == 3


def test_every_start_of_a_step_has_its_own_answer(tmp_path: Path) -> None:
    first = answer_file(tmp_path, STEP)
    assert first == answer_file(tmp_path, STEP | {"SLURM_PROCID": "0"})
    assert first != answer_file(tmp_path, STEP | {"SLURM_RESTART_COUNT": "1"})
    assert first != answer_file(tmp_path, STEP | {"SLURM_STEP_ID": "1"})
    with pytest.raises(InvalidInputError, match="set CROSSWIND_TUNE_STEP"):
        answer_file(tmp_path, {"RANK": "0"})


def test_an_answer_is_read_as_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "answers" / "a.json"
    answer = Answer(None, "T", {"x": 1}, "R", "/c", ["echo"])
    leave(path, answer)
    assert wait_for_answer(path, 1.0) == answer
    path.write_text("{")
    with pytest.raises(MalformedError, match=r"a\.json: expected the answer of rank 0"):
        wait_for_answer(path, 1.0)
    with pytest.raises(UnavailableError, match="is the folder shared"):
        wait_for_answer(tmp_path / "none.json", 0.1)
