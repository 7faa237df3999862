import re
import time

from crosswind.data.schema.run import Run, RunState, new_ulid

RUN = Run("r1", "toy", "lab", RunState.RUNNING)


def test_a_ulid_is_26_characters_without_the_letters_that_look_like_others() -> None:
    assert re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", new_ulid())


def test_ulids_sort_by_the_millisecond_they_were_made_in() -> None:
    first = new_ulid()
    time.sleep(0.002)
    assert first[:10] < new_ulid()[:10]


def test_a_ulid_tells_its_time() -> None:
    before = time.time_ns() // 1_000_000
    text = new_ulid()
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    made = sum(digits.index(letter) * 32 ** (9 - place) for place, letter in enumerate(text[:10]))
    assert before <= made <= time.time_ns() // 1_000_000


def test_ten_thousand_ranks_get_ten_thousand_ulids() -> None:
    assert len({new_ulid() for _ in range(10_000)}) == 10_000


def test_a_run_has_a_run_time_once_it_has_ended() -> None:
    assert RUN.seconds is None
    assert Run("r1", "toy", "lab", RunState.COMPLETED, started_ns=1_000_000_000, ended_ns=3_500_000_000).seconds == 2.5
    assert Run("r1", "toy", "lab", RunState.LOST, ended_ns=3_500_000_000).seconds is None
