from collections.abc import Sequence

from crosswind.ingest.load.ended_jobs import ended_jobs, output_of

SQUEUE = "12|RUNNING\n13|COMPLETED\n14_1|PENDING\n14_2|FAILED\n15|PREEMPTED\n\nslurm speaks\n"
SACCT = "20|CANCELLED by 1000\n21|COMPLETED\n22|RUNNING\n13|RUNNING\n"


def test_jobs_that_ended_are_reported_and_those_in_doubt_are_not() -> None:
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        commands.append(command)
        return SQUEUE if command[0] == "squeue" else SACCT

    jobs = ["12", "13", "13/0.1", "14_1", "14_2/0", "15", "20", "21/0", "22", "23", "node 7", "", "1;ls"]
    assert ended_jobs(jobs, run) == {"13", "13/0.1", "14_2/0", "20", "21/0"}
    assert [command[0] for command in commands] == ["squeue", "sacct"]
    assert commands[1][-1] == "--jobs=20,21,22,23"


def test_nothing_is_queried_about_what_is_no_job_and_nothing_known_without_slurm() -> None:
    assert ended_jobs(["node 7"], lambda _: "7|COMPLETED") == frozenset()
    assert ended_jobs(["12", "13_1"], lambda _: "") == frozenset()


def test_a_command_that_is_not_there_or_fails_says_nothing() -> None:
    assert output_of(["/no/such/squeue"]) == ""
    assert output_of(["sh", "-c", "echo 12; exit 1"]) == ""
    assert output_of(["echo", "12|FAILED"]) == "12|FAILED\n"
