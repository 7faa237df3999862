"""Ways to start the training programs of `programs/`, and what they print; nothing is left running."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.conftest import free_port
from tests.ingest.torch_forks import TorchForks

import crosswind

PROGRAMS = Path(__file__).parent / "programs"
FORKED = Path(__file__).with_name("forked.py")
THIS_PYTHON = Path(sys.executable)
RUN_ID = "trained"
LONGEST_SECONDS = 300  # DeepSpeed compiles a part of itself once
ENDING_SECONDS = 10  # for a launcher to end its ranks


class Launch(Protocol):
    """Runs a program on some ranks, and gives what they printed; the record is in the folder's `spool`."""

    def __call__(self, folder: Path, command: Sequence[str], *, ranks: int, python: Path) -> str: ...


def torchrun(folder: Path, command: Sequence[str], *, ranks: int, python: Path) -> str:
    """Under torchrun, as PyTorch's own parallelisms are."""
    program, *arguments = command
    rendezvous = ["--rdzv-backend", "static", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    launcher = [str(python), "-m", "torch.distributed.run", *rendezvous, "--nproc-per-node", str(ranks)]
    own = {
        "PATH": f"{python.parent}:{os.environ['PATH']}",  # of ninja, which builds what DeepSpeed needs
        "TORCH_EXTENSIONS_DIR": str(python.parents[1] / "torch_extensions"),
    }
    return printed(folder, [[*launcher, str(PROGRAMS / program), *arguments]], [own])


def forked(forks: TorchForks, folder: Path, command: Sequence[str], *, ranks: int, python: Path) -> str:
    """As forks of one process, which is quicker than torchrun and gives each rank the same environment."""
    assert python == THIS_PYTHON
    program, *arguments = command
    words = [str(FORKED), str(ranks), str(PROGRAMS / program), *arguments]
    code = f"import runpy, sys\nsys.argv = {words}\nrunpy.run_path({words[0]!r}, run_name='__main__')"
    done = forks.run(code, os.environ | recording(folder), is_watched=False)
    return checked(done.stdout, done.stderr, [done.returncode])


def mpirun(folder: Path, command: Sequence[str], *, ranks: int, python: Path) -> str:
    """Under mpirun."""
    program, *arguments = command
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    launcher = ["mpirun", "--oversubscribe", "-np", str(ranks)]
    return printed(folder, [[*launcher, str(python), str(PROGRAMS / program), *arguments]], [root])


def by_hand(folder: Path, command: Sequence[str], *, ranks: int, python: Path) -> str:
    """Each rank by itself; `PORTS` has a free one for each."""
    program, *arguments = command
    one = [str(python), str(PROGRAMS / program), *arguments]
    ports = {"WORLD_SIZE": str(ranks), "PORTS": " ".join(str(free_port()) for _ in range(ranks))}
    return printed(folder, [one] * ranks, [ports | {"RANK": str(rank)} for rank in range(ranks)])


def printed(folder: Path, commands: Sequence[Sequence[str]], environments: Sequence[Mapping[str, str]]) -> str:
    """Return what processes that train together print, once all of them have ended well."""
    running = [
        started(command, os.environ | recording(folder) | own, folder / f"rank{number}")
        for number, (command, own) in enumerate(zip(commands, environments, strict=True))
    ]
    deadline = time.monotonic() + LONGEST_SECONDS
    try:
        for process in running:
            process.wait(max(1.0, deadline - time.monotonic()))
    finally:
        for process in running:
            end(process)
    said, errors = ("".join(path.read_text() for path in folder.glob(f"rank*.{kind}")) for kind in ("out", "err"))
    return checked(said, errors, [process.returncode for process in running])


def recording(folder: Path) -> dict[str, str]:
    """Variables by which a training is recorded in this folder's `spool`."""
    return {
        "CROSSWIND_SPOOL": str(folder / "spool"),
        "CROSSWIND_RUN_ID": RUN_ID,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(crosswind.__file__).parents[1]),
    }


def checked(said: str, errors: str, exit_codes: Sequence[int]) -> str:
    """Return what was said, of a training that ended well and was recorded."""
    assert not any(exit_codes), errors[-5000:]
    assert "crosswind does not" not in errors, errors[-5000:]
    return said


def started(command: Sequence[str], environment: Mapping[str, str], output: Path) -> "subprocess.Popen[bytes]":
    out, err = output.with_suffix(".out"), output.with_suffix(".err")  # a pipe lives as long as all that inherit it
    with out.open("wb") as said, err.open("wb") as errors:
        return subprocess.Popen(command, env=environment, stdout=said, stderr=errors, start_new_session=True)


def end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is not None:
        return
    process.terminate()  # a launcher ends its ranks
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
