"""Time that the command line and the import take, beside a bare interpreter."""

import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 11
CROSSWIND = str(Path(sys.executable).with_name("crosswind"))
COMMANDS = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "import crosswind": (sys.executable, "-c", "import crosswind"),
    "crosswind --help": (CROSSWIND, "--help"),
    "import pandas": (sys.executable, "-c", "import pandas"),
}


def main() -> None:
    seconds = {name: [] for name in COMMANDS}  # type: dict[str, list[float]]
    for _ in range(ROUNDS):  # interleaved, so that a busy moment hits all alike
        for name, command in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"{'command':<20} {'median':>9} {'x interpreter':>14}")
    for name, median in medians.items():
        print(f"{name:<20} {median * 1e3:6.0f} ms {median / medians['python -c pass']:13.2f}x")
    figures = {name.replace(" ", "_"): round(median, 4) for name, median in medians.items()}
    print(
        json.dumps(figures | {"rounds": ROUNDS, "machine": f"{platform.machine()}, Python {platform.python_version()}"})
    )


if __name__ == "__main__":
    main()
