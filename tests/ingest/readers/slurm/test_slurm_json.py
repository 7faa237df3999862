"""Values in the shapes of each of Slurm's data_parser plugins, as their parsers.c writes them."""

import pytest

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.slurm import slurm_json as slurm

UNSET = {"set": False, "infinite": False, "number": 0}
INFINITE = {"set": False, "infinite": True, "number": 0}


def set_to(number: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": number}


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5), (0, 0), (set_to(5), 5), (set_to(0), 0), (UNSET, None), (INFINITE, None), (None, None)]
    + [(number, None) for number in (-2, -1, 4294967294, 4294967295, 18446744073709551614, 18446744073709551615)]
    + [(set_to(4294967294), None), ({}, None)],
)
def test_a_number_is_bare_or_says_whether_it_is_set(value: object, expected: int | None) -> None:
    assert slurm.number("time/elapsed", value) == expected


@pytest.mark.parametrize("value", [1.5, "5", True, -3, 1 << 63, [5], set_to(-3), {"set": True, "number": "5"}])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(MalformedError, match=r"time/elapsed .*; expected a whole number"):
        slurm.number("time/elapsed", value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (768, (3, None)),  # squeue --json of 22.05: as wait(2) has it
        (9, (0, 9)),
        (137, (0, 9)),  # with a core dump
        (set_to(256), (1, None)),  # squeue --json of 23.02
        (UNSET, (None, None)),
        ({"status": "SUCCESS", "return_code": 0}, (0, None)),  # sacct --json up to 23.02
        ({"status": "SIGNALED", "return_code": None, "signal": {"signal_id": 9, "name": "Killed"}}, (0, 9)),
        ({"status": "PENDING", "return_code": None}, (None, None)),
        ({"status": ["ERROR"], "return_code": set_to(3), "signal": {"id": UNSET, "name": ""}}, (3, None)),  # 23.11 on
        ({"status": ["SIGNALED"], "return_code": UNSET, "signal": {"id": set_to(9), "name": "KILL"}}, (0, 9)),
        (None, (None, None)),
    ],
)
def test_exit_codes_of_every_shape(value: object, expected: tuple[int | None, int | None]) -> None:
    assert slurm.exit_code(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("RUNNING", ("RUNNING", "RUNNING")),
        (["COMPLETED"], ("COMPLETED", "COMPLETED")),
        (["COMPLETED", "COMPLETING"], ("COMPLETING", "COMPLETED COMPLETING")),
        (["PENDING", "REQUEUED"], ("REQUEUED", "PENDING REQUEUED")),
        (["PENDING", "RECONFIG_FAIL"], ("PENDING", "PENDING RECONFIG_FAIL")),  # a flag that is not known here
    ],
)
def test_a_state_is_a_word_or_a_base_state_and_flags(value: object, expected: tuple[str, str]) -> None:
    assert slurm.state(value) == expected


def test_resources_are_written_as_sacct_does() -> None:
    listed = [
        {"type": "mem", "name": None, "id": 2, "count": 4000},
        {"type": "gres", "name": "gpu:a100", "id": 1001, "count": 8},
        {"type": "cpu", "name": "", "id": 1, "count": 96},
        {"type": "energy", "name": "", "id": 3, "count": -2},
    ]
    counts = slurm.resources("tres/allocated", listed)
    assert slurm.resources_text(counts) == "cpu=96,gres/gpu:a100=8,mem=4000M"
