"""Energy of metered nodes, given the time, on MLPerf's power logs of v4.0 (Apache-2.0).

A configuration is a benchmark on a number of nodes. The same runs were metered twice, before (AC) and after (DC) the
power supplies; both are left out together, for they are the same runs. A store holds the result logs of all runs, so
that their time is known, and the meters' readings of all configurations but the one that is asked about. Two runs
of each configuration on each meter are used: ten stores with all 280 take more than half an hour. Needs ../shared/data.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.accuracy.asked import coverage, ran
from benchmarks.accuracy.row import Row
from benchmarks.accuracy.store import Files, filled
from crosswind.client.protocol import Client
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.carbon import JOULES_PER_KILOWATT_HOUR
from crosswind.data.schema.prediction import Floats

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "power"
RUN = ["submitter_dir", "benchmark", "run", "system"]
WORSE = 1.1  # times the error of the class with features made by hand, at most
BEFORE = {"mape": 0.048, "worst_mape": 0.076, "coverage_90": 0.47}
GPUS = 8  # of a node
RUNS_EACH = 2  # of a configuration on a meter, the first


def rows() -> list[Row]:
    """Without the readings, none."""
    if not FOLDER.is_dir():
        return []
    every = pd.read_parquet(FOLDER / "energy_runs.parquet").sort_values("run_start_ms")
    runs = every.groupby(["submitter_dir", "benchmark", "n_nodes_metered"]).head(RUNS_EACH).reset_index(drop=True)
    with TemporaryDirectory(prefix="crosswind-accuracy-") as folder:
        logs = _write(runs, pd.read_parquet(FOLDER / "power_trace.parquet"), Path(folder))
        return [_row(runs, logs)]


def _row(runs: pd.DataFrame, logs: pd.DataFrame) -> Row:
    configurations = runs["benchmark"] + " " + runs["n_nodes_metered"].astype(str)
    ours, median = [], []
    for configuration in configurations.unique():
        held_out = (configurations == configuration).to_numpy()
        with filled(_files(logs, held_out)) as client:
            ours.append(_answers(client, runs[held_out]))
        watts = float(runs.loc[~held_out, "mean_kW_per_node"].median() * 1000)
        median.append(_errors(watts * _seconds(runs[held_out]) * _nodes(runs[held_out]), runs[held_out]))
    errors = [of_one["ape"].to_numpy(np.float64) for of_one in ours]
    # All runs of a configuration that is left out err alike, on both meters: each is one question.
    figures = {**_summary(errors), **coverage([float(of_one["inside"].mean()) for of_one in ours])}
    figures["coverage_90_of_runs"] = float(np.mean(np.concatenate([of_one["inside"] for of_one in ours])))
    return Row(
        task="power: energy of the nodes of H100 runs, given their time",
        split="leave one configuration (benchmark and nodes, both meters) out; mean over configurations",
        rows=len(runs),
        figures=figures,
        asked="MAPE at most 1.1 times that of the class, and coverage of 90 % within its noise",
        holds=figures["mape"] <= WORSE * BEFORE["mape"]
        and figures["coverage_90_low"] <= 0.9 <= figures["coverage_90_high"],
        baselines={"before: class by hand": BEFORE, "time x nodes x median node power": _summary(median)},
        note="10 configurations of one vendor's H100 nodes, on 1, 8 or 9 nodes: scales between are not tested; all "
        "runs of a configuration err together, so that coverage is that of 10 questions",
    )


def _answers(client: Client, runs: pd.DataFrame) -> pd.DataFrame:
    """Return `ape` and `inside` of the energies of runs of one configuration, by both meters.

    The error is that of the answered power over the time that the run took, as the questions are about power; the
    interval is that of the answered energy, and so holds the times of repeats too.
    """
    stored = ran(client, Outcome.RUN)
    answers = []
    for row in runs.to_dict("records"):
        is_asked = (stored["system"] == row["submitter_dir"]) & (stored["started_ns"] == row["run_start_ms"] * 10**6)
        [asked] = stored[is_asked].itertuples()
        energy = client.predict(asked.question, Outcome.RUN).energy
        assert energy is not None
        assert energy.node_watts is not None
        assert energy.node_count is not None
        measured = row["energy_nodes_kWh"] * JOULES_PER_KILOWATT_HOUR
        joules = energy.node_watts * energy.node_count * row["ttt_min"] * 60
        answers.append((abs(joules / measured - 1), energy.low_joules <= measured <= energy.high_joules))
    return pd.DataFrame(answers, columns=["ape", "inside"])


def _summary(errors: Sequence[Floats]) -> dict[str, float]:
    means = [float(np.mean(of_one)) for of_one in errors]
    return {"mape": float(np.mean(means)), "worst_mape": max(means)}


def _errors(joules: Floats, runs: pd.DataFrame) -> Floats:
    return np.asarray(np.abs(joules / (runs["energy_nodes_kWh"] * JOULES_PER_KILOWATT_HOUR) - 1), np.float64)


def _seconds(runs: pd.DataFrame) -> Floats:
    return runs["ttt_min"].to_numpy(np.float64) * 60


def _nodes(runs: pd.DataFrame) -> Floats:
    return runs["n_nodes_metered"].to_numpy(np.float64)


def _write(runs: pd.DataFrame, readings: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Write a result log and the readings of each run as submissions have them; a row a run: their paths and nodes."""
    of_run = dict(list(readings.groupby(RUN, observed=True)))
    logs = []
    for place, row in enumerate(runs.to_dict("records")):
        of_nodes = of_run[tuple(row[name] for name in RUN)]
        of_nodes = of_nodes[of_nodes["meter"].str.startswith("node_")]
        names = {
            str(meter): f"{row['benchmark']}-{row['n_nodes_metered']}-{meter}" for meter in of_nodes["meter"].unique()
        }
        log = folder / f"{place}.txt"
        log.write_text("".join(_result(row, sorted(names.values()))))
        logs.append((row["submitter_dir"], log, _write_readings(of_nodes, names, folder / str(place))))
    return pd.DataFrame(logs, columns=["system", "log", "meters"])


def _result(row: dict[Any, Any], nodes: Sequence[str]) -> Iterator[str]:
    began = int(row["run_start_ms"])
    yield f":::DLPAL image {began} {len(nodes)} {','.join(nodes)}\n"
    facts = {"number_of_nodes": len(nodes), "accelerators_per_node": GPUS}
    yield f":::SYSJSON {json.dumps({'accelerator_model_name': 'NVIDIA H100-SXM5-80GB', **facts})}\n"
    configuration = {"submission_benchmark": row["benchmark"], "global_batch_size": row["gbs"]}
    yield from (_event(began, key, value) for key, value in configuration.items())
    yield _event(began, "run_start", None)
    yield _event(began + round(row["ttt_min"] * 60_000), "run_stop", None, status="success")


def _event(time_ms: int, key: str, value: object, **metadata: object) -> str:
    event = {"namespace": "", "time_ms": time_ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return f":::MLLOG {json.dumps(event | {'metadata': metadata})}\n"


def _write_readings(readings: pd.DataFrame, names: Mapping[str, str], folder: Path) -> tuple[Path, ...]:
    folder.mkdir()
    paths = []
    for meter, of_meter in readings.groupby(readings["meter"].astype(str)):
        paths.append(folder / f"{meter}.txt")
        times = zip(of_meter["time_ms"], of_meter["watt"], strict=True)
        lines = (_event(int(time), "power_reading", float(watt), host=names[str(meter)]) for time, watt in times)
        paths[-1].write_text("".join(lines))
    return tuple(paths)


def _files(logs: pd.DataFrame, held_out: Floats) -> Iterable[Files]:
    for place, row in enumerate(logs.itertuples()):
        yield Files(str(row.system), (row.log, *(() if held_out[place] else row.meters)))
