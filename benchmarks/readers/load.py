"""One load of one file, by us or by the peer: `python -m benchmarks.readers.load NAME ours|PEER FILE FOLDER`."""

import json
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.readers import FORMATS
from benchmarks.readers.format import Format, Peer
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context


def main() -> None:
    name, who, path, folder = sys.argv[1:]
    [file_format] = (file_format for file_format in FORMATS if file_format.name == name)
    warm_up = Path(folder) / "few"
    file_format.make(warm_up, 10)
    take = _ours if who == "ours" else partial(_peers, file_format.peers[who])
    take(file_format, warm_up, Path(folder) / "warm")
    began = time.process_time()
    take(file_format, Path(path), Path(folder) / "home")
    print(json.dumps({"cpu_seconds": time.process_time() - began, "peak_megabytes": _peak_megabytes()}))


def _ours(file_format: Format, path: Path, home: Path) -> None:
    loaded = Loaded()
    with Store.open(home) as store:
        load_file(store, path, file_format.reader, loaded, context=Context("bench"))
    [report] = loaded.reports
    assert report.read, report
    assert not report.skipped, report.quoted


def _peers(peer: Peer, _: Format, path: Path, folder: Path) -> None:
    folder.mkdir()
    peer(path, folder)


def _peak_megabytes() -> float:
    """The most memory that this program held, without what its parent did before. Source: proc_pid_status(5)."""
    [line] = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
