"""`crosswind walltime`, by the store at hand and through a server."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.needs import program

Verb = Callable[..., tuple[int, str, str]]
TOY = ("walltime", "--workload", "toy", "--config", "batch=8", "--config", "fused=true", "--ranks", "2")
NIGHTLY = ("walltime", "--workload", "nightly", "--ranks", "4")
DIRECTIVE = re.compile(r"#SBATCH --time=(?:([1-9]\d*)-)?([01]\d|2[0-3]):([0-5]\d):00\n")  # sbatch(1): [D-]HH:MM:SS


def test_the_limit_comes_first_and_then_what_it_rests_on(verb: Verb) -> None:
    code, said, _ = verb(*TOY)
    assert code == 0
    assert said.splitlines()[0] == "#SBATCH --time=00:02:00"  # runs took 60 to 63 s
    assert "enough: with 95 %: the run takes at most" in said
    assert "from: 12 runs of this configuration and scale on this system" in said


def test_the_directive_alone_is_what_sbatch_takes(verb: Verb) -> None:
    for words in (TOY, NIGHTLY):
        code, said, _ = verb(*words, "--directive")
        assert code == 0
        assert DIRECTIVE.fullmatch(said)
    days, hours, _ = DIRECTIVE.fullmatch(verb(*NIGHTLY, "--directive")[1]).groups()  # type: ignore[union-attr]
    assert int(days) * 24 + int(hours) >= 25  # jobs took 25 h and more


SLURM = """ClusterName=none
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=9
MessageTimeout=2
NodeName=localhost
PartitionName=all Nodes=localhost Default=YES
"""


@pytest.mark.parametrize(("words", "is_taken"), [(TOY, True), (NIGHTLY, True), (None, False)])
def test_sbatch_itself_takes_the_directive(
    verb: Verb, tmp_path: Path, words: tuple[str, ...] | None, is_taken: bool
) -> None:
    """It reads the script before it looks for a controller, of which there is none."""
    program("sbatch", "slurm-client")
    directive = verb(*words, "--directive")[1] if words else "#SBATCH --time=1-2-3\n"
    (tmp_path / "slurm.conf").write_text(SLURM)
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\n{directive}true\n")
    command = ["sbatch", "--test-only", str(tmp_path / "job.sh")]
    environment = {**os.environ, "SLURM_CONF": str(tmp_path / "slurm.conf")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ("Invalid --time specification" in done.stderr) is not is_taken
    assert ("Unable to contact slurm controller" in done.stderr) is is_taken


def test_the_limit_is_the_directives_and_holds_quantile_and_startup(verb: Verb) -> None:
    prediction = json.loads(verb(*TOY, "--startup", "300", "--confidence", "0.9", "--json")[1])
    limit = prediction["limit"]
    assert limit["confidence"] == 0.9
    assert limit["seconds"] - 60 < limit["quantile_seconds"] + 300 <= limit["seconds"]
    hours, minutes, seconds = map(int, limit["directive"].rpartition("=")[2].split(":"))
    assert (hours * 60 + minutes) * 60 + seconds == limit["seconds"]


def test_more_confidence_never_asks_for_less(verb: Verb) -> None:
    limits = [
        json.loads(verb(*NIGHTLY, "--confidence", level, "--json")[1])["limit"]["seconds"]
        for level in ("0.5", "0.8", "0.95", "0.99")
    ]
    assert limits == sorted(limits)
    assert limits[0] < limits[-1]


@pytest.mark.thorough
@pytest.mark.parametrize("words", [TOY, (*TOY, "--startup", "90", "--confidence", "0.8"), NIGHTLY])
def test_a_server_says_the_same_as_the_store(verb: Verb, server_to_ask: str, words: tuple[str, ...]) -> None:
    local, asked = verb(*words, "--json"), verb(*words, "--json", "--server", server_to_ask)
    assert (local[0], asked[0]) == (0, 0)
    assert json.loads(asked[1]) == json.loads(local[1])
    for way in ([], ["--directive"]):
        assert verb(*words, *way, "--server", server_to_ask)[1] == verb(*words, *way)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*TOY, "--confidence", "0.49"), "confidence"),
        ((*TOY, "--confidence", "0.995"), "confidence"),
        ((*TOY, "--confidence", "1"), "confidence"),
        ((*TOY, "--confidence", "95"), "confidence"),
        ((*TOY, "--confidence", "nan"), "--confidence"),
        ((*TOY, "--confidence", "high"), "--confidence"),
        ((*TOY, "--startup", "-1"), "--startup"),
        ((*TOY, "--startup", "inf"), "--startup"),
        ((*TOY, "--startup", "1e15"), "Slurm takes fewer than"),
        ((*TOY, "--ranks", "0"), "--ranks 0"),
        ((*TOY, "--config", "batch"), "NAME=VALUE"),
        ((*TOY, "--workload", "unheard-of"), "known are"),
        (("walltime", "--ranks", "2"), "--workload"),
    ],
)
def test_what_cannot_be_meant_is_refused(verb: Verb, server_to_ask: str, words: tuple[str, ...], message: str) -> None:
    for server in ([], ["--server", server_to_ask]):
        code, said, complaint = verb(*words[:1], *server, *words[1:])
        assert (code, said) == (2, "")
        assert message in complaint
        assert "Traceback" not in complaint


def test_a_server_that_is_down_prints_no_directive(verb: Verb) -> None:
    code, said, complaint = verb(*TOY, "--directive", "--server", "http://127.0.0.1:9")
    assert (code, said) == (75, "")
    assert "does not answer" in complaint
