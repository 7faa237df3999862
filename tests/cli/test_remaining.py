"""`crosswind remaining`, by the store at hand and through a server."""

import json
from collections.abc import Callable

import pytest

Verb = Callable[..., tuple[int, str, str]]
GOING = "toy-12"  # 12 of 30 steps are done, of some 40 ms each


def test_the_text_tells_what_is_left(verb: Verb) -> None:
    code, said, _ = verb("remaining", GOING)
    assert code == 0
    assert verb("remaining", GOING[1:])[1] == said  # named by the end of its id
    done, left, whole, following, compared = said.splitlines()
    assert done.startswith("step 12 of 30 after ")  # as many as its cohort's runs had
    assert left.startswith("remaining: ")
    assert whole.startswith("all steps: ")
    assert following.startswith("next step: ")
    assert compared == "from: 12 earlier runs of the workload, 12 of this configuration and scale"


def test_what_is_left_and_what_is_done_make_the_whole(verb: Verb) -> None:
    prediction = json.loads(verb("remaining", GOING, "--json")[1])
    left, whole = ([quantile["seconds"] for quantile in prediction[name]] for name in ("remaining", "total"))
    assert [seconds - prediction["seconds_done"] for seconds in whole] == pytest.approx(left)
    assert left == sorted(left)
    assert 0.8 * 18 * 0.04 < left[3] < 1.3 * 18 * 0.04  # 18 steps like those before
    assert (prediction["steps_done"], prediction["total_steps"], prediction["cohort_runs"]) == (12, 30, 12)


def test_more_steps_take_longer(verb: Verb) -> None:
    medians = [
        json.loads(verb("remaining", GOING, "--steps", steps, "--json")[1])["remaining"][3]["seconds"]
        for steps in ("12", "20", "60")
    ]
    assert medians[0] == 0
    assert medians[0] < medians[1] < medians[2]


@pytest.mark.thorough
@pytest.mark.parametrize("words", [(GOING,), (GOING, "--steps", "45"), (GOING, "--steps", "12"), ("toy-11",)])
def test_a_server_says_the_same_as_the_store(verb: Verb, server_to_ask: str, words: tuple[str, ...]) -> None:
    local = verb("remaining", *words, "--json")
    asked = verb("remaining", *words, "--json", "--server", server_to_ask)
    assert (local[0], asked[0]) == (0, 0)
    assert json.loads(asked[1]) == json.loads(local[1])
    assert verb("remaining", *words, "--server", server_to_ask)[1] == verb("remaining", *words)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "RUN"),
        (("nope",), "nope"),
        (("a b/c?d=e",), "a b/c"),
        (("silent-20",), "no step is recorded yet"),
        ((GOING, "--steps", "11"), "total_steps 11: expected 12"),
        ((GOING, "--steps", "0"), "--steps"),
        ((GOING, "--steps", "-3"), "--steps"),
        ((GOING, "--steps", "1.5"), "--steps"),
        ((GOING, "--steps", "10000001"), "total_steps"),
        ((GOING, "--steps", "9" * 30), "--steps"),
        ((GOING, "--server", "ftp://x"), "expected http://HOST:PORT"),
    ],
)
def test_what_cannot_be_meant_is_refused(verb: Verb, server_to_ask: str, words: tuple[str, ...], message: str) -> None:
    for server in ([], ["--server", server_to_ask]):
        code, said, complaint = verb("remaining", *server, *words)
        assert (code, said) == (2, "")
        assert message in complaint
        assert "Traceback" not in complaint


def test_a_server_that_is_down_is_asked_again_later(verb: Verb) -> None:
    code, said, complaint = verb("remaining", GOING, "--server", "http://127.0.0.1:9")
    assert (code, said) == (75, "")
    assert "does not answer" in complaint
