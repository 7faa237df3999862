"""`crosswind predict`, by the store at hand and through a server."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from crosswind.cli.verbs.predict import node_counts
from crosswind.data.schema.errors import InvalidInputError

Verb = Callable[..., tuple[int, str, str]]
TOY = ("--workload", "toy", "--config", "batch=8", "--config", "fused=true")
RUN = ("predict", *TOY, "--ranks", "2")
LIKE = ("predict", "--like", "toy-11")
SCALES = ("predict", *TOY, "--ranks-per-node", "2", "--nodes", "1..4")
PRICES = ("--node-watts", "400", "--per-node-hour", "2.5", "--carbon-grams-per-kilowatt-hour", "380")
NETWORK = ("hidden=4096", "layers=32", "tp=8", "pp=2", "global_batch=512", "accelerator=H100")
NAMED = [word for value in NETWORK for word in ("--config", value)]
GPT = ("predict", "--workload", "gpt", "--ranks", "64", *NAMED)
MANY = ",".join(map(str, range(1, 66)))  # one more than are taken
ROOM = 80  # columns of a terminal


def test_the_text_tells_the_interval_and_what_it_rests_on(verb: Verb) -> None:
    code, said, _ = verb(*RUN)
    assert code == 0
    first, *rest = said.splitlines()
    assert first.startswith("median step of the next run: ")
    assert first.count(" ms") == 3
    assert "from: 12 runs of this configuration and scale on this system" in rest
    assert next(line.split() for line in rest if line.startswith("toy-"))[:2] == ["toy-11", "2"]


def test_json_says_all_that_the_api_says(verb: Verb) -> None:
    prediction = json.loads(verb(*RUN, "--json")[1])
    assert (prediction["basis"], prediction["cohort_runs"], prediction["outcome"]) == ("cohort", 12, "step_p50_seconds")
    assert [quantile["level"] for quantile in prediction["quantiles"]] == [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
    assert 0.040 < prediction["quantiles"][3]["seconds"] < 0.044  # 40 to 43 ms a step


@pytest.mark.parametrize(
    "words",
    [
        RUN,
        (*RUN, "--outcome", "run", "--limit", "70"),
        (*RUN, "--system", "elsewhere"),
        (*LIKE, "--ranks", "4", "--system", "elsewhere", "--config", "batch=16"),
        (*LIKE, "--ranks-per-node", "2", "--nodes", "1..4"),
        ("walltime", "--like", "toy-11"),
        GPT,
        SCALES,
        (*SCALES, *PRICES, "--deadline", "90", "--now", "2"),
        ("predict", "--workload", "silent", "--ranks", "2"),
        ("predict", "--workload", "nightly", "--ranks", "4"),
    ],
)
def test_a_server_says_the_same_as_the_store(verb: Verb, server_to_ask: str, words: tuple[str, ...]) -> None:
    local, asked = verb(*words, "--json"), verb(*words, "--json", "--server", server_to_ask)
    assert (local[0], asked[0]) == (0, 0)
    assert json.loads(asked[1]) == json.loads(local[1])
    assert verb(*words, "--server", server_to_ask)[1] == verb(*words)[1]


def test_a_run_like_a_stored_one_is_asked_about_by_its_id(verb: Verb) -> None:
    assert verb(*LIKE, "--json") == verb(*RUN, "--json")
    assert verb(*LIKE, "--ranks", "4", "--system", "elsewhere", "--json") == verb(
        *RUN[:-1], "4", "--system", "elsewhere", "--json"
    )


def test_a_run_like_a_stored_one_is_asked_about_by_the_names_that_other_verbs_take(
    verb: Verb, server_to_ask: str
) -> None:
    newest = json.loads(verb("show", "latest", "--json")[1])["run"]["run_id"]
    assert newest != "toy-11"
    for place in ((), ("--server", server_to_ask)):
        assert verb("predict", "--like", "latest", "--json", *place) == verb("predict", "--like", newest, "--json")
        assert verb("predict", "--like", "y-11", "--json", *place) == verb(*LIKE, "--json")


def test_what_is_given_replaces_what_the_stored_run_had(verb: Verb) -> None:
    answer = json.loads(verb(*LIKE, "--config", "batch=16", "--json")[1])
    assert (answer["basis"], answer["cohort_runs"], answer["world_size"]) == ("cohort", 1, 2)
    renamed = json.loads(verb(*LIKE, "--workload", "silent", "--outcome", "run", "--json")[1])
    assert (renamed["workload"], renamed["basis"]) == ("silent", "workload")


def test_the_environment_names_a_server_too(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_SERVER", "http://127.0.0.1:9")
    assert verb(*RUN)[0] == 75
    monkeypatch.setenv("CROSSWIND_SERVER", "")
    assert verb(*RUN)[0] == 0


def test_the_outcome_is_the_finest_that_was_recorded(verb: Verb) -> None:
    assert "run time of the next run: 6" in verb("predict", "--workload", "silent", "--ranks", "2")[1]
    assert "run time of the next job: 26 h" in verb("predict", "--workload", "nightly", "--ranks", "4")[1]
    assert "median step of the next run: 4" in verb(*RUN)[1]


def test_a_limit_that_no_run_ever_reached_is_unlikely_to_be_passed(verb: Verb) -> None:
    assert "longer than 10 min 0 s: at most 1 %" in verb(*RUN, "--outcome", "run", "--limit", "600")[1]
    assert "longer than 1.00 s: at least 95 %" in verb(*RUN, "--outcome", "run", "--limit", "1")[1]


def test_what_never_ran_here_is_flagged(verb: Verb) -> None:
    _, said, _ = verb(*RUN, "--system", "elsewhere")
    assert "from: 13 runs of the workload, none on this system" in said
    assert "warning: system is elsewhere, earlier runs had lab" in said


def test_memory_is_predicted_for_a_described_network(verb: Verb) -> None:
    _, said, _ = verb(*GPT)
    memory = json.loads(verb(*GPT, "--json")[1])["memory"]
    assert f"memory: {memory['bytes'] / 1e9:.3g} GB on the fullest rank by formulas" in said
    assert "outside: no run to compare with: the interval is a guess" in said
    one = [word.replace("tp=8", "tp=1").replace("pp=2", "pp=1") for word in GPT]
    assert "which does NOT fit" in verb(*one, "--ranks", "1")[1].replace("\n  ", " ")


@pytest.mark.parametrize("words", [RUN, (*RUN, "--system", "elsewhere"), GPT, SCALES, (*SCALES, *PRICES)])
def test_no_line_is_wider_than_a_terminal(verb: Verb, words: tuple[str, ...]) -> None:
    assert max(map(len, verb(*words)[1].splitlines())) <= ROOM


def test_energy_and_cost_are_shown_only_where_they_are_priced(verb: Verb) -> None:
    _, said, _ = verb(*SCALES)
    assert "".join(said.splitlines()[0].split()) == "nodesruntime90%intervalspeedupefficiencynode-hours"
    assert "energy" not in said
    _, priced, _ = verb(*SCALES, *PRICES)
    assert ["nodes", "energy", "cost", "CO2"] in [line.split() for line in priced.splitlines()]
    assert "CO2" not in verb(*SCALES, "--per-node-hour", "1")[1]


def test_thousands_are_printed_and_what_a_terminal_obeys_is_not(verb: Verb) -> None:
    _, said, _ = verb(*SCALES, "--per-node-hour", "1e6")
    assert "\u202f" in said
    assert "?" not in said
    _, said, _ = verb(*RUN, "--system", "a\x1b[2Jb")
    assert "system is a?[2Jb, earlier runs had lab" in said


def test_scales_name_their_basis_and_the_nodes_to_request(verb: Verb) -> None:
    _, said, _ = verb(*SCALES)
    assert "from: runs of this configuration and scale: 1 node\n" in said
    assert "from: other runs of the workload on this system: 2, 4 nodes\n" in said
    advice = json.loads(verb(*SCALES, "--now", "3", "--json")[1])
    assert advice["change"] == advice["advised"] - 3
    assert f"request {advice['advised']} node" in said


def test_a_deadline_that_no_number_of_nodes_keeps_gets_no_advice(verb: Verb) -> None:
    assert "no number of nodes keeps the deadline with 95 %" in verb(*SCALES, "--deadline", "0.001")[1]
    _, said, _ = verb(*SCALES, "--deadline", "1e6", "--now", "4")
    assert "request 1 node: shrink by 3 (" in said


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ("1..64", [1, 2, 4, 8, 16, 32, 64]),
        ("3..20", [3, 6, 12, 20]),
        ("5..5", [5]),
        ("7", [7]),
        ("1,2,3", [1, 2, 3]),
        (",".join(map(str, range(1, 65))), list(range(1, 65))),
    ],
)
def test_numbers_of_nodes_are_listed_or_doubled(words: str, counts: list[int]) -> None:
    assert node_counts(words) == counts


@pytest.mark.parametrize(
    "words",
    ["", "0", "0..4", "4..1", "-1", "2,1", "1,1", "1,", "1..", "..4", "1..2..3", "1.5", "many", "9" * 5000, MANY],
)
def test_numbers_of_nodes_that_do_not_rise_from_1_are_refused(words: str) -> None:
    with pytest.raises(InvalidInputError, match="--nodes"):
        node_counts(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("predict", "--ranks", "2"), "--workload"),
        (("predict", *TOY), "--ranks is missing"),
        (("predict", "--like", "toy-99"), "run 'toy-99' is not stored: crosswind runs lists"),
        ((*LIKE, "--ranks", "0"), "--ranks 0: expected 1 or more"),
        ((*LIKE, "--config", "tp=3"), "do not divide 2 ranks"),
        ((*LIKE, "--nodes", "1,2"), "--like with --nodes: expected --ranks-per-node too"),
        ((*RUN, "--ranks", "-1"), "--ranks -1"),
        ((*RUN, "--ranks", "1.5"), "--ranks"),
        ((*RUN, "--ranks", "10000001"), "10000000"),
        ((*RUN, "--outcome", "joy"), "--outcome"),
        ((*RUN, "--limit", "0"), "--limit: '0', expected a finite number above 0"),
        ((*RUN, "--limit", "-1"), "--limit"),
        ((*RUN, "--limit", "nan"), "--limit"),
        ((*RUN, "--limit", "inf"), "--limit"),
        ((*RUN, "--limit", "soon"), "--limit"),
        ((*RUN, "--config", "batch"), "NAME=VALUE"),
        ((*RUN, "--config", "=8"), "NAME=VALUE"),
        ((*RUN, "--config", "batch=9"), "--config batch is given twice"),
        ((*RUN, "--config", "rate=NaN"), "rate=NaN"),
        ((*RUN, "--config", "rate=1e999"), "rate=1e999"),
        ((*RUN, "--config", f"rate={10**20}"), "64 bits"),
        ((*RUN, "--config", "tp=3"), "do not divide 2 ranks"),
        ((*RUN, "--nodes", "1,2"), "--ranks does not go with --nodes"),
        ((*SCALES, "--limit", "3"), "--limit does not go with --nodes"),
        ((*SCALES, "--outcome", "step"), "--outcome does not go with --nodes"),
        ((*RUN, "--deadline", "60"), "--deadline goes with --nodes"),
        ((*RUN, "--now", "2"), "--now goes with --nodes"),
        ((*RUN, "--ranks-per-node", "2"), "--ranks-per-node goes with --nodes"),
        ((*RUN, "--node-watts", "2"), "--node-watts goes with --nodes"),
        ((*SCALES, "--nodes", "4..1"), "--nodes '4..1'"),
        ((*SCALES, "--nodes", ""), "--nodes ''"),
        ((*SCALES, "--ranks-per-node", "0"), "--ranks-per-node"),
        ((*SCALES, "--deadline", "0"), "--deadline"),
        ((*SCALES, "--deadline", "nan"), "--deadline"),
        ((*SCALES, "--now", "0"), "--now"),
        ((*SCALES, "--node-watts", "-1"), "--node-watts"),
        ((*SCALES, "--per-node-hour", "inf"), "--per-node-hour"),
        ((*SCALES, "--carbon-grams-per-kilowatt-hour", "380"), "carbon_grams_per_kilowatt_hour goes with node_watts"),
        ((*RUN, "--workload", "tory"), "did you mean toy?"),
        ((*RUN, "--server", "127.0.0.1:8321"), "expected http://HOST:PORT"),
    ],
)
def test_what_cannot_be_meant_is_refused(verb: Verb, server_to_ask: str, words: tuple[str, ...], message: str) -> None:
    for server in ([], ["--server", server_to_ask]):
        code, said, complaint = verb(*words[:1], *server, *words[1:])
        assert (code, said) == (2, "")
        assert message in complaint
        assert "Traceback" not in complaint


def test_a_server_that_is_down_is_asked_again_later(verb: Verb) -> None:
    code, said, complaint = verb(*RUN, "--server", "http://127.0.0.1:9")
    assert (code, said) == (75, "")
    assert "http://127.0.0.1:9 does not answer: Connection refused" in complaint


class SomebodyElse(BaseHTTPRequestHandler):
    """A web page where a server of ours was expected."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>welcome")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_an_answer_of_some_other_server_is_refused(verb: Verb) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), SomebodyElse) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        code, said, complaint = verb(*RUN, "--server", f"http://127.0.0.1:{other.server_port}")
        other.shutdown()
    assert (code, said) == (2, "")
    assert "answered text/html, expected a JSON object" in complaint


ASK_AND_LIST = """
import json, sys
from crosswind.cli.main import main
code = main(json.loads(sys.argv[1]))
print(json.dumps([code, sorted({"numpy", "pandas", "scipy", "pyarrow", "duckdb", "fastapi"} & set(sys.modules))]))
"""


@pytest.mark.parametrize(
    "words", [RUN, SCALES, ("walltime", *TOY, "--ranks", "2"), ("remaining", "toy-12", "--steps", "30")]
)
def test_through_a_server_nothing_heavy_is_imported(
    home_to_ask: Path, server_to_ask: str, words: tuple[str, ...]
) -> None:
    command = [sys.executable, "-c", ASK_AND_LIST, json.dumps([*words, "--server", server_to_ask])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=plain_environment(home_to_ask))
    assert json.loads(done.stdout.splitlines()[-1]) == [0, []]


def plain_environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CROSSWIND_", "NO_COLOR"))}
    return kept | {"CROSSWIND_HOME": str(home), "CROSSWIND_SYSTEM": "lab"}


@pytest.mark.parametrize(("no_color", "is_coloured"), [(None, True), ("1", False), ("", False)])
def test_colour_is_for_terminals_that_want_it(
    home_to_ask: Path, server_to_ask: str, no_color: str | None, is_coloured: bool
) -> None:
    leader, follower = pty.openpty()
    environment = plain_environment(home_to_ask) | ({} if no_color is None else {"NO_COLOR": no_color})
    command = [sys.executable, "-m", "crosswind.cli.main", *GPT, "--server", server_to_ask]
    done = subprocess.run(command, stdout=follower, check=True, env=environment)
    os.close(follower)
    said = os.read(leader, 10_000).decode()
    os.close(leader)
    assert done.returncode == 0
    assert ("\x1b[33moutside: " in said) is is_coloured
    assert ("\x1b[" in said) is is_coloured
