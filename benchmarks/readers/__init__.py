"""Files of others into the lake: units of work a CPU second beside a peer, and memory at two sizes of file.

`python -m benchmarks readers`; one file a format, listed in FORMATS. Each load is a process of its own.
"""

from benchmarks.readers.compare import compare
from benchmarks.readers.ldms import LDMS
from benchmarks.readers.mllog import MLLOG
from benchmarks.readers.prometheus import PROMETHEUS
from benchmarks.readers.sacct import SACCT, SACCT_WITH_STEPS

FORMATS = (SACCT, SACCT_WITH_STEPS, LDMS, PROMETHEUS, MLLOG)


def main() -> None:
    compare(FORMATS)
