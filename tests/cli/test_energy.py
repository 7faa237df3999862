"""Energy in what verbs say: of a run that was metered, of one to come, and what its electricity emits."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.dashboards.energy_wording import measured_words
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.energy import MeasuredEnergy, MeterScope
from crosswind.data.schema.carbon import CarbonIntensity, Origin
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.pm_counters import PM_COUNTERS
from crosswind.settings import Settings

SECOND = 1_000_000_000
WATTS = 500
HOUR = 3600
RUNS = 4
Ask = Callable[..., tuple[int, str, str]]
CARBON, PUE = "CROSSWIND_CARBON_GRAMS_PER_KWH", "CROSSWIND_PUE"
NEXT = ("predict", "--workload", "bert", "--ranks", "16", "--config", "batch=8")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Verbs over four runs of an hour each on two nodes of 500 W."""
    for name in ("CROSSWIND_SERVER", "CROSSWIND_DATABASE", "CROSSWIND_SPOOL", CARBON, PUE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    with Store.open(tmp_path / "home") as store:
        with store.catalog.write() as session:
            for number in range(RUNS):
                session.runs.merge(a_run(number))
        for node in ("n1", "n2"):
            store.lake.append(node, to_table(with_node_keys(PM_COUNTERS), metered(node)))

    def ask(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask


def a_run(number: int) -> Run:
    began = number * 2 * HOUR * SECOND
    return Run(
        f"RUN{number:04}",
        "bert",
        "lab",
        RunState.COMPLETED,
        world_size=16,
        configuration={"batch": 8},
        nodes=("n1", "n2"),
        started_ns=began,
        ended_ns=began + HOUR * SECOND,
    )


def metered(node: str) -> dict[str, list[int | str]]:
    times = range(-60, RUNS * 2 * HOUR, 30)
    return {
        "ts_ns": [at * SECOND for at in times],
        "node": [node] * len(times),
        "device": ["node"] * len(times),
        "boot_id": ["b"] * len(times),
        "energy_joules_total": [10**6 + WATTS * at for at in times],
    }


def test_show_prints_what_meters_measured(ask: Ask) -> None:
    assert "energy 1.00 kWh, measured by pm_counters; 500 W a node" in ask("show", "0002")[1].splitlines()
    energy = json.loads(ask("show", "0002", "--json")[1])["energy"]
    assert energy["joules"] == pytest.approx(2 * WATTS * HOUR)
    assert (energy["origin"], energy["scope"], energy["carbon_grams"]) == ("measured", "node", None)


def test_show_has_no_energy_of_an_unmetered_run(ask: Ask, tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store, store.catalog.write() as session:
        session.runs.merge(Run("DARK", "bert", "lab", RunState.COMPLETED, started_ns=1, ended_ns=SECOND))
    assert "energy" not in ask("show", "DARK")[1]
    assert json.loads(ask("show", "DARK", "--json")[1])["energy"] is None


def test_predict_tells_the_energy_of_the_next_run(ask: Ask) -> None:
    _, said, _ = ask(*NEXT)
    [line] = [line for line in said.splitlines() if line.startswith("energy")]
    assert line.startswith("energy: 1.00 kWh [")
    assert "from 4 metered runs of this configuration and scale on this system; 500 W a node" in one_line(said)


def test_predict_says_which_energy_is_estimated(ask: Ask) -> None:
    other = [word for name in ("hidden=1024", "layers=8", "global_batch=64", "steps=10") for word in ("--config", name)]
    _, said, _ = ask(
        "predict", "--workload", "gpt", "--ranks", "8", *other, "--config", "accelerator=H100", "--system", "x"
    )
    assert "estimated by the accelerator's power limit: no such run was metered" in one_line(said)
    _, said, _ = ask("predict", "--workload", "bert", "--ranks", "16", "--system", "x")
    assert "estimated: from 4 metered runs of other workloads here or of this one elsewhere" in one_line(said)


def test_scales_show_energy_and_cost_of_metered_nodes(ask: Ask) -> None:
    words = ("predict", "--workload", "bert", "--config", "batch=8", "--nodes", "2,4", "--ranks-per-node", "8")
    _, said, _ = ask(*words, "--per-node-hour", "2.5")
    lines = [line.split() for line in said.splitlines()]
    assert ["nodes", "energy", "cost"] in lines
    assert ["2", "1.00", "kWh", "5.00"] in lines
    assert "energy: from 4 metered runs of this configuration and scale" in one_line(said)


def test_the_sites_electricity_tells_carbon(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CARBON, "380")
    monkeypatch.setenv(PUE, "1.5")
    assert "energy 1.00 kWh (570 g CO2e), measured by pm_counters; 500 W a node" in ask("show", "0002")[1]
    assert json.loads(ask(*NEXT, "--json")[1])["energy"]["carbon_grams"] == pytest.approx(570, rel=0.01)
    words = ("predict", "--workload", "bert", "--config", "batch=8", "--nodes", "2", "--ranks-per-node", "8", "--json")
    [point] = json.loads(ask(*words)[1])["curve"]["points"]
    assert point["carbon_grams"] == pytest.approx(570, rel=0.01)


@pytest.mark.parametrize(
    ("name", "value"), [(CARBON, "much"), (CARBON, "-1"), (CARBON, "nan"), (CARBON, "inf"), (PUE, "0.9"), (PUE, "x")]
)
@pytest.mark.parametrize("words", [NEXT, ("show", "0002"), ("serve", "--port", "0")])
def test_electricity_that_is_no_number_is_refused(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    code, _, complaint = ask(*words)
    assert code == 2
    assert f"{name} is {value!r}, expected a finite number from" in complaint


def test_without_a_setting_nothing_is_assumed_of_the_electricity() -> None:
    assert Settings.from_environment({}).intensity is None
    assert Settings.from_environment({PUE: "1.2"}).intensity is None
    assert Settings.from_environment({CARBON: "0"}).intensity == CarbonIntensity(0.0, 1.0)
    with pytest.raises(InvalidInputError, match=PUE):
        _ = Settings.from_environment({PUE: "0"}).intensity


def test_a_meter_of_parts_says_so() -> None:
    measured = MeasuredEnergy(500.0, Origin.MEASURED, MeterScope.CHIPS, "rapl+gpu", 0.93, 5.0, 2000.0)
    words = (
        "500 J (2.00 kg CO2e), of processors, memory and accelerators alone, measured by rapl+gpu over 93 % of the time"
    )
    assert measured_words(measured) == f"{words}; 5.00 W a node"


def one_line(said: str) -> str:
    return " ".join(said.split())
