"""How near to the optimum a tuner gets: median best found / optimum after 5 to 80 trials on measured configurations.

Only rows of a table may be picked; a failed row costs a trial; sources are 200 random rows of other tables. What was
looked at while the portfolio was made, and what was not, is said in benchmarks/tuning/tasks.py. Peers take part where
they are installed. With TUNER_RESULTS naming a folder, finished races are kept there and read again; TUNER_SEEDS and
TUNER_RACERS (names, by comma) choose the part to run. Without ../shared/data our own sample grid runs alone.
"""

import json
import os
import platform
from collections.abc import Sequence

from benchmarks.accuracy.table import tell
from benchmarks.tuning.race import COLD, MISLED, RACERS, TRIALS, WARM, Racer, geometric, medians
from benchmarks.tuning.tables import TABLES, Task
from benchmarks.tuning.tasks import REFERENCE_DESIGN, REFERENCE_HELD_OUT

SHOWN = (5, 10, 20, 40, 80)
SEEDS = int(os.environ.get("TUNER_SEEDS", "10"))
NO_SOURCES = (Task("sample grid", ()),)


def splits() -> dict[str, tuple[Sequence[Task], Sequence[Racer]]]:
    """Tasks and tuners by the name of the split."""
    found: dict[str, tuple[Sequence[Task], Sequence[Racer]]] = {"sample": (NO_SOURCES, _chosen(COLD))}
    if TABLES.is_dir():
        every = _chosen([*WARM, MISLED, *COLD])
        found["design"] = (REFERENCE_DESIGN, every)
        found["held_out"] = (REFERENCE_HELD_OUT, every)
        found["reference"] = ((*REFERENCE_DESIGN, *REFERENCE_HELD_OUT), every)
    return found


def _chosen(racers: Sequence[Racer]) -> list[Racer]:
    names = os.environ.get("TUNER_RACERS", ",".join(RACERS)).split(",")
    return [racer for racer in racers if racer.name in names]


def main() -> None:
    print(f"{'split':<10} {'tuner':<17} {'table':<34}" + "".join(f"{f'@{count}':>8}" for count in SHOWN))
    figures: dict[str, object] = {}
    for split, (tasks, racers) in splits().items():
        for racer in racers:
            rows = {task.target: medians(racer, task, range(SEEDS), SHOWN) for task in tasks}
            for name, row in [*rows.items(), ("geometric mean", geometric(rows))]:
                print(f"{split:<10} {racer.name:<17} {name:<34}" + "".join(f"{ratio:8.3f}" for ratio in row))
            figures |= {
                f"{split}_{racer.name}_at_{count}": round(float(geometric(rows)[i]), 4) for i, count in enumerate(SHOWN)
            }
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    tell(["sparse_solvers", "ise"])
    print(json.dumps(figures | {"seeds": SEEDS, "trials": TRIALS, "machine": machine}))


if __name__ == "__main__":
    main()
