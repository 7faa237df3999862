"""Why a distributed training run was slow, how long the next one will take, and which configuration to run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # 50 ms that the command line does not need
    from pathlib import Path

    from crosswind.data.trial import Configuration
    from crosswind.ingest.probe.run import RunProbe

RANKED = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def _shorten_flight_recorder() -> None:
    """Has a rank's PyTorch keep its last 128 collectives, not 2000: the probe reads them twice a second.

    PyTorch takes the number when it makes its first process group. Where there are NVIDIA devices it is left alone:
    there the recorder is what explains a hang.
    """
    distributed = sys.modules.get("torch.distributed")
    is_late = distributed is not None and distributed.is_available() and distributed.is_initialized()
    if not is_late and any(name in os.environ for name in RANKED) and not os.path.exists("/dev/nvidiactl"):  # noqa: PTH110
        os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "128")


_shorten_flight_recorder()
__version__ = "0.1.0"
__all__ = ["run"]


def run(
    *,
    workload: str | None = None,
    config: Configuration | None = None,
    spool: Path | None = None,
    run_id: str | None = None,
) -> RunProbe:
    """The probe of this rank, a context manager: `with crosswind.run(...) as run: for batch in run.steps(loader): ...`.

    Args:
        workload: what is trained, whatever the configuration.
        config: flat map of parameter name to scalar.
        spool: folder to write to.
        run_id: the same on all ranks; by default that of `crosswind run`, else one agreed by broadcast.
    """
    from crosswind.ingest.probe.run import RunProbe  # noqa: PLC0415 - see above

    return RunProbe(workload=workload, config=config, spool=spool, run_id=run_id)
