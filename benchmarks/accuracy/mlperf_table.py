"""The configurations of MLPerf's training rounds as a table of what is known before a run."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crosswind.data.devices.sheets import device_named

RUNS = Path(__file__).resolve().parents[3] / "shared" / "data" / "mlperf" / "runs.parquet"
# When the round's results were published: software gets faster.
ROUNDS = {
    "training_results_v0.7": 2020.5,
    "hpc_results_v0.7": 2020.8,
    "training_results_v1.0": 2021.4,
    "hpc_results_v1.0": 2021.8,
    "training_results_v1.1": 2021.9,
    "training_results_v2.0": 2022.4,
    "training_results_v2.1": 2022.8,
    "hpc_results_v2.0": 2022.8,
    "training_results_v3.0": 2023.4,
    "training_results_v3.1": 2023.8,
    "hpc_results_v3.0": 2023.8,
    "training_results_v4.0": 2024.4,
    "training_results_v4.1": 2024.8,
}
RATES = ("hp_opt_base_learning_rate", "hp_lars_opt_base_learning_rate", "hp_opt_lr")
DEVICE_FIGURES = ("flops_16bit", "memory_bytes_per_second", "memory_bytes", "power_watts")
NUMBERS = (
    "ranks",
    "per_node",
    "global_batch",
    "local_batch",
    *DEVICE_FIGURES,
    "published",
    "learning_rate",
    "accumulation",
    "samples",
)
CATEGORIES = ("workload", "device")
FEATURES = [*NUMBERS, *CATEGORIES, "site"]


def runs() -> pd.DataFrame:
    """Successful runs of the closed division, a row each."""
    table = pd.read_parquet(RUNS)
    good = (table["division"] == "closed") & (table["status"] == "success") & (table["ttt_min"] > 0)
    return table[good & (table["n_nodes"] > 0) & (table["benchmark"] != "")]


def configurations(table: pd.DataFrame) -> pd.DataFrame:
    """A row a configuration: FEATURES, `family` and `minutes`, the median time to train of its runs."""
    grouped = table.groupby("config_id")
    first = grouped.first()
    n_runs = grouped.size().to_numpy()
    processors = first["sys_host_processors_per_node"].where(first["n_accelerators"] == 0)
    per_node = processors.fillna(first["acc_per_node"]).to_numpy(np.float64)
    rows = pd.DataFrame({"per_node": per_node}, index=first.index)
    rows["ranks"] = _ranks(first, rows["per_node"].to_numpy(), n_runs)
    rows["global_batch"] = first["gbs"]
    rows["local_batch"] = first["gbs"] / rows["ranks"]
    rows["published"] = first["round"].map(ROUNDS)
    rows["learning_rate"] = first[list(RATES)].astype(np.float64).bfill(axis=1).iloc[:, 0]
    rows["accumulation"] = first["hp_gradient_accumulation_steps"].clip(lower=1)
    rows["samples"] = first["hp_train_samples"].where(first["benchmark"] != "bert")  # there, those that it needed
    rows["workload"] = [_workload(*entry) for entry in zip(first["benchmark"], rows["published"], strict=True)]
    rows["site"] = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in first["submitter_dir"]]
    rows = rows.join(pd.DataFrame([_device(row) for _, row in first.reset_index().iterrows()], index=first.index))
    rows["minutes"] = grouped["ttt_min"].median()
    return rows.sort_values("published", kind="stable")


def _ranks(first: pd.DataFrame, per_node: "np.ndarray", n_runs: "np.ndarray") -> "np.ndarray":
    """Devices that train one instance: a weak-scaling log holds many that train side by side."""
    devices = first["n_accelerators"].where(first["n_accelerators"] > 0, first["n_nodes"] * per_node)
    logged = first["hp_number_of_ranks"].fillna(devices / n_runs)
    return devices.where(first["scaling"] != "weak", logged).to_numpy(np.float64)


def _workload(benchmark: str, published: float) -> str:
    """MLPerf kept the name `ssd` when it replaced SSD on COCO by RetinaNet on OpenImages in v2.0."""
    return "retinanet" if benchmark == "ssd" and published > 2022 else benchmark


def _device(row: "pd.Series[Any]") -> dict[str, object]:
    names = [row["sys_accelerator_model_name"], row["acc_family"], row["system"]]
    names += [row["sys_host_processor_model_name"]] if row["n_accelerators"] == 0 else []
    device = next((match for name in names if (match := device_named(str(name)))), None)
    figures = {name: getattr(device, name) if device else math.nan for name in DEVICE_FIGURES}
    name = device.name if device else None
    family = name if row["acc_family"] in {"TPU", "CPU"} else row["acc_family"]
    return {**figures, "device": name, "family": family}
