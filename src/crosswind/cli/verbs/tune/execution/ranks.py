"""One trial for all ranks of a job step: rank 0 asks, the others read its answer from a shared folder."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.cli.verbs.tune.asker import job_key, restarts
from crosswind.data.files import published
from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError

STEP = "CROSSWIND_TUNE_STEP"
STEP_VARIABLES = (STEP, "PMIX_NAMESPACE", "PALS_APID", "TORCHELASTIC_RUN_ID")
LAUNCHERS = (  # rank, size, and what must be there
    ("RANK", "WORLD_SIZE", "RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_RANK", "PMI_SIZE", "PMI_RANK"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),
)
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Answer:
    """The answer that rank 0 got: a trial's configuration and the run that its ranks record, or an exit code."""

    exit_code: int | None = None
    trial_id: str = ""
    configuration: Mapping[str, Any] | None = None
    run_id: str = ""
    checkpoint: str | None = None
    command: Sequence[str] = ()


def rank_of_step(environment: Mapping[str, str] = os.environ) -> int | None:
    """This process's number where every rank of a job step calls; None where it is called once.

    A batch script has Slurm's number of tasks, too, but is no step. Source: srun(1), SLURM_STEP_NUM_TASKS.
    """
    for rank, size, needed in LAUNCHERS:
        if environment.get(needed, "").isdigit() and environment.get(size, "").isdigit():
            return int(environment.get(rank, "0") or 0) if int(environment[size]) > 1 else None
    return None


def answer_file(folder: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return where rank 0 of this very start of the job step leaves its answer.

    Raises: InvalidInputError where nothing tells one start from the next.
    """
    step = environment.get("SLURM_STEP_ID", "")
    named = next((environment[name] for name in STEP_VARIABLES if environment.get(name)), None)
    job = job_key(environment)
    if named is None and not (job and step.isdigit()):
        raise InvalidInputError(
            f"several ranks ask, and nothing names their step: set {STEP} to a text that they share and no other has"
        )
    words = (job or "", step, str(restarts(environment)), named or "")
    name = "-".join("".join(letter if letter.isalnum() else "_" for letter in word) for word in words)
    return folder / "answers" / f"{name[:200]}.json"


def leave(path: Path, answer: Answer) -> None:
    """Leaves the answer for the other ranks; it appears whole. Raises: UnavailableError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with published(path, is_durable=False) as file:
            file.write(json.dumps(vars(answer)).encode())
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}: the other ranks cannot get their trial") from error


def wait_for_answer(path: Path, seconds: float) -> Answer:
    """Return what rank 0 left. Raises: UnavailableError after so long without it, MalformedError."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            list(path.parent.iterdir())  # NFS looks for new files in a folder only when that is read
            return Answer(**json.loads(path.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            time.sleep(LOOK_SECONDS)
        except (ValueError, TypeError) as error:
            raise MalformedError(f"{path}: expected the answer of rank 0: {error}") from error
        except OSError as error:
            raise UnavailableError(f"{path}: {error.strerror}") from error
    raise UnavailableError(f"{path}: rank 0 left no answer within {seconds:g} s: is the folder shared by all nodes?")
