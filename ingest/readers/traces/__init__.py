"""Readers of traces, a format each; a new one is one file, one line in TRACE_READERS, and its test."""

from crosswind.ingest.readers.traces.chakra import ChakraReader
from crosswind.ingest.readers.traces.kineto import KinetoReader
from crosswind.ingest.readers.traces.nsys import NsysReader
from crosswind.ingest.readers.traces.otf2 import Otf2Reader
from crosswind.ingest.readers.traces.paraver import ParaverReader
from crosswind.ingest.readers.traces.reader import TraceReader
from crosswind.ingest.readers.traces.rocpd import RocpdReader
from crosswind.ingest.readers.traces.rocprof import RocprofReader
from crosswind.ingest.readers.traces.step_table import StepTableReader
from crosswind.ingest.readers.traces.xplane import XplaneReader

TRACE_READERS: list[TraceReader] = [  # the order in which they are asked
    KinetoReader(),
    NsysReader(),
    RocprofReader(),
    RocpdReader(),
    XplaneReader(),
    ParaverReader(),
    Otf2Reader(),
    ChakraReader(),
    StepTableReader(),
]
