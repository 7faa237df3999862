"""Why a distributed training run was slow, how long the next one will take, and which configuration to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # 50 ms that the command line does not need
    from pathlib import Path

    from IPython.core.interactiveshell import InteractiveShell

    from crosswind import tune
    from crosswind.client.asynchronous import AsyncClient
    from crosswind.client.protocol import Client
    from crosswind.data.schema.question import LikeRun, Question
    from crosswind.data.schema.trial import Configuration
    from crosswind.ingest.probe.run import RunProbe

__version__ = "0.1.0"
__all__ = ["LikeRun", "Question", "connect", "connect_async", "run", "tune"]
DEADLINE_SECONDS = 120.0


def run(
    *,
    workload: str | None = None,
    config: Configuration | None = None,
    spool: Path | str | None = None,
    run_id: str | None = None,
    count_work: bool = False,
) -> RunProbe:
    """The probe of this rank, a context manager: `with crosswind.run(...) as run: for batch in run.steps(loader): ...`.

    Args:
        workload: what is trained, whatever the configuration.
        config: flat map of parameter name to scalar.
        spool: folder to write to.
        run_id: the same on all ranks; by default that of `crosswind run`, else one agreed by broadcast.
        count_work: whether PyTorch counts the floating point operations and bytes of the third step, which slows it.
    """
    from crosswind.ingest.probe.run import RunProbe  # noqa: PLC0415 - see above

    return RunProbe(workload=workload, config=config, spool=spool, run_id=run_id, count_work=count_work)


def connect(
    server: str | None = None,
    *,
    token: str | None = None,
    ca_file: str | None = None,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Client:
    """Answers about stored runs: `with crosswind.connect() as client: client.explain(run_id)`.

    Args:
        server: URL of a server, `https://HOST`, `http://HOST:PORT/PREFIX` or `unix:///PATH`; by default
            $CROSSWIND_SERVER, and without that the store of this machine.
        token: for a server; by default that of $CROSSWIND_TOKEN or of the file $CROSSWIND_TOKEN_FILE.
        ca_file: certificates in PEM that are trusted besides this machine's; by default $CROSSWIND_CA_FILE.
        deadline_seconds: after which a request has failed, with all its repeats.
    """
    from crosswind.client.connection import connect as connected  # noqa: PLC0415 - see above

    return connected(server, token=token, ca_file=ca_file, deadline_seconds=deadline_seconds)


def connect_async(
    server: str | None = None,
    *,
    token: str | None = None,
    ca_file: str | None = None,
    deadline_seconds: float = DEADLINE_SECONDS,
    connections: int = 16,
) -> AsyncClient:
    """The same for asyncio and trio: `async with crosswind.connect_async() as client: await client.explain(run_id)`.

    Args:
        server, token, ca_file, deadline_seconds: as of `connect`.
        connections: how many questions are asked at once; further ones wait.
    """
    from crosswind.client.asynchronous import AsyncClient  # noqa: PLC0415 - see above

    return AsyncClient(
        lambda: connect(server, token=token, ca_file=ca_file, deadline_seconds=deadline_seconds), connections
    )


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Show answers in notebooks as `crosswind` prints them: `%load_ext crosswind`."""
    from crosswind.notebook import show_answers  # noqa: PLC0415 - see above

    show_answers(shell)


def __getattr__(name: str) -> object:
    """Import `crosswind.tune`, or the class of a question, when a program first names it."""
    if name not in ("tune", "LikeRun", "Question"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    if name == "tune":
        return import_module("crosswind.tune")
    return getattr(import_module("crosswind.data.schema.question"), name)
