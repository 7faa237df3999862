"""The formats that a file which is in none of them is nearest to, and what to do about it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Reader
from crosswind.ingest.readers.binary import plain_bytes
from crosswind.ingest.readers.slurm.sacct import sacct_command
from crosswind.ingest.readers.tables.table_file import PARQUET, header_of, parquet_names

NEAREST = 3
NAMED = 8  # columns
SQLITE = b"SQLite format 3"
DASHES = re.compile(r"-{3,}(?: -+)*\s*")
NAME = re.compile(r"[A-Za-z#][\w .#/()%-]{0,60}")
# Words of each format; a file that has some of them may be in it, with a header missing or another version's.
SIGNS: Mapping[str, Sequence[str]] = {
    "sacct": ("JobID", "JobName", "State", "Elapsed", "NNodes", "ExitCode", "Partition"),
    "squeue": ("JOBID", "PARTITION", "NODELIST", "NODES", "TIME"),
    "scontrol": ("JobId=", "JobState=", "NumNodes=", "TimeLimit="),
    "sacct_json": ('"jobs"', '"association"', '"exit_code"', '"tres"'),
    "squeue_json": ('"jobs"', '"job_state"', '"accrue_time"'),
    "pbs": (";E;", "exec_host=", "resources_used.", "Resource_List."),
    "lsf": ("JOB_FINISH", "JOB_NEW"),
    "bacct": ("Accounting information about jobs", "Job <", "Total number of done jobs"),
    "flux": ('"t_submit"', '"ranks"', '"nodelist"'),
    "swf": ("; Version", "; MaxNodes", "; UnixStartTime"),
    "mllog": (":::MLLOG", ":::MLPv0.5", "run_start", "submission_benchmark"),
    "megatron": ("elapsed time per iteration", "lm loss", "consumed samples"),
    "deepspeed": ("DeepSpeed", "SamplesPerSec", "global_step="),
    "caffe": ("solver.cpp", "Iteration ", ", loss = "),
    "lbann": ("lbann", "training epoch", "objective function"),
    "keras": ("Epoch 1/", "- loss:", "ETA:"),
    "estimator": ("global_step/sec", "INFO:tensorflow", "Saving checkpoints"),
    "horovod": ('"NEGOTIATE_', '"ph"', "horovod"),
    "prometheus": ("# HELP", "# TYPE", '{instance="', "_total{"),
    "ldms": ("#Time", "Time_usec", "component_id", "job_id"),
    "nvidia_smi": ("utilization.gpu", "power.draw", "temperature.gpu", "memory.used"),
    "nvidia_dmon": ("# gpu", "pwr", "gtemp", "mclk"),
    "dcgmi_dmon": ("#Entity", "GPU 0", "POWER", "GPUTL"),
    "ptd_power": ("Time,", ",Watts,", ",Volts,"),
    "influx": (",host=", "usage_idle="),
    "trainer_state": ('"log_history"', '"global_step"', '"best_metric"'),
    "optuna_journal": ('"op_code"', '"study_id"'),
    "kernel_tuner": ('"tune_params_keys"', '"cache"', '"device_name"'),
    "kernel_tuner_t4": ('"results"', '"invalidity"', '"measurements"'),
    "ray_tune": ('"trial_data"', '"runner_data"', "evaluated_params"),
    "configurations": ("objective", "maximise:", "maximize:"),
}


def advice_on(path: Path, head: bytes, readers: Sequence[Reader]) -> str:
    """Return what a file may be that begins with `head` and is in no format, and what to type then."""
    text = plain_head(head)
    if _is_sacct_table(text):
        command = " ".join(sacct_command("now-30days"))
        return f"sacct's own table cuts names and has no times: write it by: {command}"
    nearest = _nearest(head, text)
    described = [
        f"{reader.name} ({reader.description})" for name in nearest for reader in readers if reader.name == name
    ]
    parts = [f"nearest: {', '.join(described)}: name it by --format {nearest[0]}"] if described else []
    if columns := _columns(path, head):
        more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
        shown = ", ".join(columns[:NAMED]) + more
        parts.append(f"a table with columns {shown}: say what they are by --map FILE (docs/tables.md)")
    return "; ".join(parts or ["no known format is near"]) + "; crosswind ingest --help lists all formats"


def _nearest(head: bytes, text: str) -> list[str]:
    if plain_bytes(head).startswith(SQLITE):
        return ["optuna", "mlflow_sqlite"]
    hits = {name: sum(sign in text for sign in signs) for name, signs in SIGNS.items()}
    ranked = sorted((name for name, count in hits.items() if count > 1), key=lambda name: -hits[name])
    return ranked[:NEAREST]


def _columns(path: Path, head: bytes) -> Sequence[str]:
    """Return the columns of what looks like a table; empty for anything else."""
    if plain_bytes(head).startswith(PARQUET):
        return parquet_names(path)
    names = header_of(head)
    return names if len(names) > 1 and all(map(NAME.fullmatch, names)) else ()


def _is_sacct_table(text: str) -> bool:
    first, _, rest = text.partition("\n")
    names = first.split()
    return bool({"JobID", "JobIDRaw"} & set(names)) and "State" in names and bool(DASHES.fullmatch(rest.split("\n")[0]))
