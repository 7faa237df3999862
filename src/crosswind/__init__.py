"""Why a distributed training run was slow, how long the next one will take, and which configuration to run."""

from crosswind.ingest.probe.run import RunProbe as run  # noqa: N813 - `with crosswind.run(...)` reads as what it is

__version__ = "0.1.0"
__all__ = ["run"]
