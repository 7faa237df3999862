"""Training programs in forks of one process that has PyTorch: each takes a fraction of the time of its import.

Started as a program this file is that process. A fork has its loop watched as a rank has once it has imported torch,
and goes on as the interpreter would whose main program the asked code is.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class TorchForks:
    """Runs programs, one after the other."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, code: str, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        """Run this code as a program of its own, and return what became of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("output", "errors")]
            request = {"code": code, "environment": dict(environment), "files": [str(file) for file in files]}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            exit_code = int(self._process.stdout.readline())
            output, errors = (file.read_text() for file in files)
        return subprocess.CompletedProcess((), exit_code, output, errors)


@contextmanager
def torch_forks() -> Iterator[TorchForks]:
    """The process, until the block ends."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield TorchForks(process)


def next_program() -> str | None:
    """The code that this process, a fork, is to run; None in the first one once nobody asks any more."""
    for line in sys.stdin:
        request = json.loads(line)
        fork = os.fork()
        if fork == 0:
            become(request["environment"], request["files"])
            return str(request["code"])
        _, status = os.waitpid(fork, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return None


def become(environment: Mapping[str, str], files: list[str]) -> None:
    """Makes this fork a rank of its own."""
    from crosswind.ingest.injected.hooks import install  # noqa: PLC0415 - the parent of this process has no torch

    for fd, file in enumerate((os.devnull, *files)):
        opened = os.open(file, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, fd)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    install(lambda: None)


if __name__ == "__main__":
    import torch._dynamo
    import torch.utils.data  # noqa: F401

    import crosswind.ingest.injected.hooks  # noqa: F401

    gc.collect()
    gc.freeze()  # a fork that looks through it all would copy it all
    if (program := next_program()) is not None:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
