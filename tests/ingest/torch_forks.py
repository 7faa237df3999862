"""Training programs in forks of one process that has PyTorch: each takes a fraction of the time of its import.

Started as a program this file is that process. A fork goes on as the interpreter would whose main program the asked
code is; where that was asked, its loop is watched as that of a rank is once it has imported torch.
"""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LONGEST_SECONDS = 300


class TorchForks:
    """Runs programs, one after the other."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(
        self, code: str, environment: Mapping[str, str], *, is_watched: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run this code as a program of its own, and return what became of it; it is killed after five minutes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("output", "errors")]
            request = {"code": code, "environment": dict(environment), "files": [str(file) for file in files]}
            request["is_watched"] = is_watched
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
            if request["is_watched"]:
                watch()
            return str(request["code"])
        _, status = os.waitpid(fork, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return None


def become(environment: Mapping[str, str], files: list[str]) -> None:
    """Makes this fork a process of its own."""
    for fd, file in enumerate((os.devnull, *files)):
        opened = os.open(file, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, fd)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    signal.alarm(LONGEST_SECONDS)


def watch() -> None:
    """Watches the loop of this process."""
    from crosswind.ingest.injected.hooks import install  # noqa: PLC0415 - the parent of this process has no torch

    install(lambda: None)


def leave() -> None:
    """End at once, when everything else is done: to take PyTorch down takes a fork ten times as long as to train."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


if __name__ == "__main__":
    exit_code = 0
    atexit.register(leave)

    import torch._dynamo
    import torch.distributed.rpc
    import torch.utils.data  # noqa: F401

    import crosswind.ingest.injected.hooks  # noqa: F401

    gc.collect()
    gc.freeze()  # a fork that looks through it all would copy it all
    if (program := next_program()) is not None:
        try:
            exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
        except SystemExit as end:
            exit_code = end.code if isinstance(end.code, int) else int(end.code is not None)
            raise
        except BaseException:
            exit_code = 1
            raise
