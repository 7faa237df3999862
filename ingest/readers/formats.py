"""All readers of other tools' formats; a new one is one file, one line in READERS, and its test.

It stands beside the package's beginning so that a process that reads traces need not load the rest: 85 MB of memory.
"""

import itertools
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.ingest.reader.lines import head_of
from crosswind.ingest.reader.reader import Reader
from crosswind.ingest.readers.logs.caffe import CaffeReader
from crosswind.ingest.readers.logs.deepspeed import DeepSpeedReader
from crosswind.ingest.readers.logs.estimator import EstimatorReader
from crosswind.ingest.readers.logs.flexflow import FlexFlowReader
from crosswind.ingest.readers.logs.horovod import HorovodReader
from crosswind.ingest.readers.logs.keras import KerasReader
from crosswind.ingest.readers.logs.lbann import LbannReader
from crosswind.ingest.readers.logs.megatron import MegatronReader
from crosswind.ingest.readers.logs.mllog import MllogReader
from crosswind.ingest.readers.nearest import advice_on
from crosswind.ingest.readers.preambles import later_parts
from crosswind.ingest.readers.schedulers.bacct import BacctReader
from crosswind.ingest.readers.schedulers.flux import FluxReader
from crosswind.ingest.readers.schedulers.flux_archive import FluxArchiveReader
from crosswind.ingest.readers.schedulers.lsf import LsfReader
from crosswind.ingest.readers.schedulers.pbs import PbsReader
from crosswind.ingest.readers.schedulers.swf import SwfReader
from crosswind.ingest.readers.searches.configurations import ConfigurationsReader
from crosswind.ingest.readers.searches.kernel_tuner import KernelTunerReader
from crosswind.ingest.readers.searches.kernel_tuner_t4 import KernelTunerT4Reader
from crosswind.ingest.readers.searches.optuna_journal import OptunaJournalReader
from crosswind.ingest.readers.searches.optuna_sqlite import OptunaReader
from crosswind.ingest.readers.searches.ray_tune import RayTuneReader
from crosswind.ingest.readers.slurm.sacct import SacctReader
from crosswind.ingest.readers.slurm.sacct_json import SacctJsonReader
from crosswind.ingest.readers.slurm.scontrol import ScontrolReader
from crosswind.ingest.readers.slurm.squeue import SqueueReader
from crosswind.ingest.readers.slurm.squeue_json import SqueueJsonReader
from crosswind.ingest.readers.tables.table_reader import TableReader
from crosswind.ingest.readers.telemetry.dcgmi_dmon import DcgmiDmonReader
from crosswind.ingest.readers.telemetry.influx import InfluxReader
from crosswind.ingest.readers.telemetry.ldms import LdmsReader
from crosswind.ingest.readers.telemetry.mlperf_power import MlperfPowerReader
from crosswind.ingest.readers.telemetry.nvidia_dmon import NvidiaDmonReader
from crosswind.ingest.readers.telemetry.nvidia_smi import NvidiaSmiReader
from crosswind.ingest.readers.telemetry.prometheus import PrometheusReader
from crosswind.ingest.readers.telemetry.ptd_power import PtdPowerReader
from crosswind.ingest.readers.trackers.lightning_csv import LightningCsvReader
from crosswind.ingest.readers.trackers.mlflow_run import MlflowReader
from crosswind.ingest.readers.trackers.mlflow_sqlite import MlflowSqliteReader
from crosswind.ingest.readers.trackers.tensorboard import TensorBoardReader
from crosswind.ingest.readers.trackers.trainer_state import TrainerStateReader
from crosswind.ingest.readers.trackers.wandb_run import WandbReader

READERS: tuple[Reader, ...] = (
    SacctReader(),
    SacctJsonReader(),
    SqueueJsonReader(),
    ScontrolReader(),
    SqueueReader(),
    PbsReader(),
    LsfReader(),
    BacctReader(),
    FluxReader(),
    FluxArchiveReader(),
    SwfReader(),
    MlperfPowerReader(),
    MllogReader(),
    MegatronReader(),
    DeepSpeedReader(),
    CaffeReader(),
    LbannReader(),
    FlexFlowReader(),
    HorovodReader(),
    KerasReader(),
    EstimatorReader(),
    LdmsReader(),
    NvidiaSmiReader(),
    NvidiaDmonReader(),
    DcgmiDmonReader(),
    PtdPowerReader(),
    InfluxReader(),
    PrometheusReader(),
    TensorBoardReader(),
    WandbReader(),
    MlflowReader(),
    MlflowSqliteReader(),
    LightningCsvReader(),
    TrainerStateReader(),
    OptunaReader(),
    OptunaJournalReader(),
    KernelTunerReader(),
    KernelTunerT4Reader(),
    RayTuneReader(),
    ConfigurationsReader(),
    TableReader(),
)
LOGS = tuple(  # of programs whose first lines may be anybody's
    reader
    for reader in READERS
    if reader.name in ("mllog", "megatron", "deepspeed", "caffe", "lbann", "flexflow", "keras", "estimator")
)
GROUP = "crosswind.readers"  # entry points by which other people's packages add theirs


def reader_for(path: Path, format: str | None = None) -> Reader:  # noqa: A002  the users' word
    """Return the reader of the named format, or of the one that the file's beginning shows.

    Raises: InvalidInputError (no such format), MalformedError (not recognised), UnavailableError.
    """
    if format is not None:
        return _named(format)
    head = head_of(path)
    if not head:
        raise MalformedError(f"{path}: empty; expected a file of a known format (crosswind ingest --help lists them)")
    for reader in itertools.chain(READERS, map(_loaded, _others())):  # a broken package affects only its own format
        if reader.recognises(path, head):
            return reader
    for part in later_parts(path):
        for reader in LOGS:
            if reader.recognises(path, part):
                return reader
    raise MalformedError(f"{path}: format not recognised; {advice_on(path, head, READERS)}")


def format_names() -> list[str]:
    """Return the names of all formats, ours first."""
    return [reader.name for reader in READERS] + [entry.name for entry in _others()]


def _named(name: str) -> Reader:
    """Return the reader of this name; other packages are loaded only for theirs."""
    for reader in READERS:
        if reader.name == name:
            return reader
    for entry in _others():
        if entry.name == name:
            return _loaded(entry)
    raise InvalidInputError(f"format {name!r} is not known; expected one of: {', '.join(format_names())}")


def _others() -> list[EntryPoint]:
    """Return other packages' readers, not loaded."""
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _loaded(entry: EntryPoint) -> Reader:
    """Load another package's reader. Raises: UnavailableError when its package is broken."""
    try:
        reader: Reader = entry.load()()
    except (ImportError, AttributeError, TypeError) as error:
        raise UnavailableError(f"reader {entry.name!r} ({entry.value}) cannot be loaded: {error}") from error
    return reader
