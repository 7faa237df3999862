"""An export that is larger than memory is read in little of it."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

FILE_BYTES = 2 << 30
MEMBER_BYTES = 8 << 20
GROWTH_MEGABYTES = 150  # the blocks of the first member are as large as any; an allocator keeps some of what was freed
HEADER = "JobIDRaw|State|Start|End|MaxRSS|SubmitLine\n"
READ = """
import sys
from pathlib import Path
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.slurm.sacct import SacctReader

def peak():
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024

peaks, report = [], Report("export", "sacct")
for table in SacctReader().read(Path(sys.argv[1]), report, Context("test")):
    peaks.append(peak())
print(report.read, report.skipped, peaks[9], peaks[-1])
"""


@pytest.mark.thorough
def test_two_gigabytes_are_read_in_as_much_memory_as_the_first_blocks(tmp_path: Path) -> None:
    submitted = "srun " + "--export=NAME=value " * 800
    job = "1|COMPLETED|1795200000|1795200060||sbatch\n1.0|COMPLETED|1795200000|1795200060|1024|{submitted}\n"
    jobs = MEMBER_BYTES // len(job.format(submitted=submitted))
    member = gzip.compress(job.format(submitted=submitted).encode() * jobs, compresslevel=1)
    path, members = tmp_path / "export.gz", FILE_BYTES // MEMBER_BYTES
    with path.open("wb") as file:
        file.write(gzip.compress(HEADER.encode()))
        file.writelines(member for _ in range(members))
    answer = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, check=True).stdout
    read, skipped, early, late = map(int, answer.split())
    assert (read, skipped) == (jobs * members, 0)
    assert late - early < GROWTH_MEGABYTES
