"""Growth beyond one machine: servers, days in the lake, runs and jobs in the catalog, runs to train on.

CROSSWIND_BENCH_PARTS=ingest,lake chooses parts; docs/scale.md names the variables for their sizes.
"""

import importlib
import json
import os
import platform
import tempfile
from pathlib import Path

PARTS = ("ingest", "node", "lake", "catalog", "training")
ASKED = {"ingest_2_servers_relative": 1.1, "lake_run_page_growth": 1.5}  # at most


def main() -> None:
    wanted = os.environ.get("CROSSWIND_BENCH_PARTS", ",".join(PARTS)).split(",")
    if unknown := sorted(set(wanted) - set(PARTS)):
        raise SystemExit(f"CROSSWIND_BENCH_PARTS has {', '.join(unknown)}, expected of {', '.join(PARTS)}")
    figures: dict[str, object] = {}
    for part in wanted:
        with tempfile.TemporaryDirectory(prefix="crosswind-bench-") as name:
            folder = Path(name)
            folder.chmod(0o755)  # the user of PostgreSQL passes through
            measured = importlib.import_module(f"benchmarks.scaling.{part}").figures(folder)
        for figure, value in measured.items():
            asked = f"   asked <= {ASKED[figure]}" if figure in ASKED else ""
            print(f"{figure:<48} {value}{asked}", flush=True)
        figures |= measured
    figures["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
