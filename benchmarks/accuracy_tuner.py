"""Nearness of tuners to the optimum: median best found / optimum after 1 to 80 trials on measured configurations.

Only rows of a table may be picked; a failed row costs a trial; sources are 200 random rows of other tables. What was
looked at while the portfolio was made, and what was not, is said in benchmarks/tuning/tasks.py. Beside each racer
stands how probable it is at each count that the portfolio with sources is ahead of it by chance: Wilcoxon's signed-rank
test over the seeds, of the geometric mean over the tables. Peers take part where they are installed (`make peers`).
With TUNER_RESULTS naming a folder, finished searches are kept there and read again; TUNER_SEEDS, TUNER_RACERS and
TUNER_SPLITS (names, by comma) choose the part to run. Without ../shared/data our own sample grid runs alone.

With TABLES naming a folder of FAMILY/NAME.parquet or .csv, that folder's tables are raced instead: each from others of
its family, one trial at a time and in batches of BATCH, and from a wrong family (benchmarks/tuning/folder.py). Means
are also given of tables with more than LARGE valid rows and of the others. Wrong sources, shuffled ones and another
family's, stand beside the searches without sources, search by search over the same tables and seeds.
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.accuracy.table import tell
from benchmarks.tuning.folder import tasks_across, tasks_within
from benchmarks.tuning.race import BATCHED, COLD, MISLED, RACERS, TRIALS, WARM, Racer, geometric, race
from benchmarks.tuning.tables import FOLDER, TABLES, Task, table
from benchmarks.tuning.tasks import ANOTHER_PROGRAM, HEFFTE_LARGEST, REFERENCE_DESIGN, REFERENCE_HELD_OUT, zeus
from crosswind.data.schema.prediction import Floats

SHOWN = (1, 3, 5, 10, 20, 40, 80)
FEW = (1, 3, 8)  # trials: the Zeus jobs are judged after the last of them
FEWEST_SEEDS = 6  # of which a signed-rank test says anything
SEEDS = range(int(os.environ.get("TUNER_SEEDS", "20")))
NO_SOURCES = (Task("sample grid", ()),)
WORST = 1e3  # what a search counts as that has found nothing yet
WITHIN = 1.05
WRONG = ("another_program", "another_family")  # splits whose sources are wrong by themselves
WRONG_SHOWN = (5, 10, 20, 40, 80)
LARGE = 1000  # valid rows; in smaller tables 80 trials are a good part of all


def splits() -> dict[str, tuple[Sequence[Task], Sequence[Racer]]]:
    """Tasks and tuners by the name of the split."""
    by_name = _own_splits() if FOLDER in os.environ else _reference_splits()
    names = os.environ.get("TUNER_SPLITS", ",".join(by_name)).split(",")
    chosen = {name: (tasks, _chosen(racers)) for name, (tasks, racers) in by_name.items() if name in names}
    return {name: (tasks, racers) for name, (tasks, racers) in chosen.items() if tasks and racers}


def _reference_splits() -> dict[str, tuple[Sequence[Task], Sequence[Racer]]]:
    by_name: dict[str, tuple[Sequence[Task], Sequence[Racer]]] = {"sample": (NO_SOURCES, COLD)}
    if TABLES.is_dir():
        every, reference = [*WARM, MISLED, *COLD], (*REFERENCE_DESIGN, *REFERENCE_HELD_OUT)
        by_name["design"] = (REFERENCE_DESIGN, every)
        by_name["held_out"] = (REFERENCE_HELD_OUT, every)
        by_name["reference"] = (reference, every)
        by_name["batches"] = (reference, BATCHED)
        by_name["largest"] = (HEFFTE_LARGEST, WARM)
        by_name["another_program"] = (ANOTHER_PROGRAM, [*WARM[:1], *COLD[:2]])
        by_name["zeus"] = (zeus(), WARM)
    return by_name


def _own_splits() -> dict[str, tuple[Sequence[Task], Sequence[Racer]]]:
    within = tasks_within()
    return {
        "tables": (within, [*WARM, MISLED, *COLD]),
        "batches": (within, BATCHED),
        "another_family": (tasks_across(), [*WARM[:1], *COLD[:2]]),
    }


def _chosen(racers: Sequence[Racer]) -> list[Racer]:
    names = os.environ.get("TUNER_RACERS", ",".join(RACERS)).split(",")
    return [racer for racer in racers if racer.name in names]


def main() -> None:
    figures: dict[str, object] = {}
    raced: dict[tuple[str, str], Floats] = {}
    for split, (tasks, racers) in splits().items():
        curves = {racer.name: _curves(racer, tasks, raced) for racer in racers}
        figures |= _tell_few(tasks, curves) if split == "zeus" else _tell_table(split, tasks, curves)
        figures |= tell_wrong(split, curves)
    if "TUNER_SPLITS" not in os.environ and FOLDER not in os.environ:
        tell(["sparse_solvers", "ise"])
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    print(json.dumps(figures | {"seeds": len(SEEDS), "trials": TRIALS, "machine": machine}))


def _curves(racer: Racer, tasks: Sequence[Task], raced: dict[tuple[str, str], Floats]) -> Floats:
    """Best / optimum, shape (n_tasks, n_seeds, TRIALS); what was not raced yet is raced."""
    new = [task for task in tasks if (racer.name, task.name) not in raced]
    if new:
        raced |= dict(zip([(racer.name, task.name) for task in new], race(racer, new, SEEDS), strict=True))
    return np.minimum([raced[racer.name, task.name] for task in tasks], WORST)


def _tell_table(split: str, tasks: Sequence[Task], curves: Mapping[str, Floats]) -> dict[str, object]:
    """Prints the medians over the seeds by table and their geometric mean; its figures."""
    columns = "".join(f"{f'@{count}':>8}" for count in SHOWN)
    print(f"{split:<17} {'table':<34}{columns}   within {WITHIN - 1:.0%}")
    figures: dict[str, object] = {}
    for name, curve in curves.items():
        shown = curve[:, :, np.array(SHOWN) - 1]
        medians, within = np.median(shown, axis=1), float(np.mean(curve[:, :, -1] <= WITHIN))
        for task, row in zip(tasks, medians, strict=True):
            print(f"{name:<17} {task.target:<34}" + "".join(f"{ratio:8.3f}" for ratio in row))
        for size, part in by_size(tasks).items():
            line = "".join(f"{ratio:8.3f}" for ratio in geometric(medians[part]))
            print(f"{name:<17} {f'{len(part)} {size}':<34}{line}")
        mean = geometric(medians)
        line = "".join(f"{ratio:8.3f}" for ratio in mean) + f"{within:8.0%}"
        print(f"{name:<17} {'geometric mean':<34}{line}{_sureness(curves, name)}", flush=True)
        figures |= {f"{split}_{name}_at_{count}": round(float(mean[i]), 4) for i, count in enumerate(SHOWN)}
        figures[f"{split}_{name}_within"] = round(within, 3)
    return figures


def by_size(tasks: Sequence[Task]) -> dict[str, list[int]]:
    """Return the places of the large and of the small tables; nothing where all are of one size."""
    large = np.array([table(task.target).n_valid > LARGE for task in tasks])
    if large.all() or not large.any():
        return {}
    return {"large": np.flatnonzero(large).tolist(), "small": np.flatnonzero(~large).tolist()}


def tell_wrong(split: str, curves: Mapping[str, Floats]) -> dict[str, object]:
    """Prints what wrong sources cost: best found over that of a search without, search by search; its figures."""
    wrong = WARM[0].name if split in WRONG else MISLED.name
    figures: dict[str, object] = {}
    for cold in (racer.name for racer in COLD[:2] if {wrong, racer.name} <= curves.keys()):
        logs = np.log(geometric(curves[wrong])) - np.log(geometric(curves[cold]))  # (n_seeds, TRIALS)
        for count in WRONG_SHOWN:
            ratio, chance = float(np.exp(logs[:, count - 1].mean())), _chance(logs[:, count - 1])
            print(f"{split:<17} {f'{wrong} over {cold}':<42} @{count}: {ratio:.3f}, p {chance:.2g}")
            figures[f"{split}_{wrong}_over_{cold}_at_{count}"] = round(ratio, 4)
    return figures


def _chance(ahead: Floats) -> float:
    """Return how probable values so far above 0 are by chance; 1 where there are too few of them for a test."""
    if len(ahead) < FEWEST_SEEDS or not ahead.any():
        return 1.0
    return float(wilcoxon(ahead, alternative="greater").pvalue)


def _sureness(curves: Mapping[str, Floats], name: str) -> str:
    """Return how probable it is at each count that the portfolio is ahead of this racer by chance alone."""
    first = next((racer.name for racer in (WARM[0], BATCHED[0]) if racer.name in curves), name)
    ours = curves[first]
    if name == first or len(SEEDS) < FEWEST_SEEDS:
        return ""
    chances = []
    for count in SHOWN:
        chances.append(_chance(np.log(geometric(curves[name][:, :, count - 1]) / geometric(ours[:, :, count - 1]))))
    return "   p " + " ".join(f"{chance:.2g}" for chance in chances)


def _tell_few(tasks: Sequence[Task], curves: Mapping[str, Floats]) -> dict[str, object]:
    """Prints the mean regret after few trials, over tasks and seeds; its figures."""
    figures: dict[str, object] = {}
    print(f"{'zeus':<17} {'mean regret':<60}" + "".join(f"{f'@{count}':>8}" for count in FEW))
    for name, curve in curves.items():
        regret = curve[:, :, np.array(FEW) - 1] - 1
        for task, row in zip(tasks, regret.mean(axis=1), strict=True):
            print(f"{name:<17} {task.name:<60}" + "".join(f"{mean:8.2%}" for mean in row))
        means = regret.mean(axis=(0, 1))
        print(f"{name:<17} {f'all {len(tasks)}':<60}" + "".join(f"{mean:8.2%}" for mean in means), flush=True)
        figures |= {
            f"zeus_{name}_regret_at_{count}": round(float(mean), 5) for count, mean in zip(FEW, means, strict=True)
        }
    return figures


if __name__ == "__main__":
    main()
