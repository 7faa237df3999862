"""Choice of a program's variant for an unseen input, on measured programs and inputs (../shared/data/tuning/ise_*).

Each input of a program is left out in turn; the program's other inputs were measured at every variant. Nothing is known
of an input but its name, so before a trial the chooser can only weigh the others alike. The default of a program is the
variant of the least mean log time over its other inputs: the strongest choice that needs no trial and no input.
Settings were looked at on DEVELOPED programs alone, the others are scored once.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.accuracy.row import Row
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.variants.chooser import VariantChooser
from crosswind.models.tuner.variants.experience import Context, Experience

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "tuning"
DEVELOPED = ("batlik", "lrzip", "z3")
KEPT_ASIDE = ("dconvert", "jump3r", "x264", "xz")
TRIALS = (0, 1, 2, 5)
NOT_PARAMETERS = ("objective", "valid", "std", "n")


def rows() -> list[Row]:
    """One row a program; none without the tables."""
    there = [(name, split) for split, names in _SPLITS.items() for name in names if (TABLES / f"ise_{name}").is_dir()]
    return [_row(name, split) for name, split in there]


def table_of(program: str) -> pd.DataFrame:
    """Objectives, a row a variant that all inputs know, a column an input."""
    columns = {}
    for path in sorted((TABLES / f"ise_{program}").glob("*.parquet")):
        rows = pd.read_parquet(path)
        rows["objective"] = rows["objective"].where(rows["valid"])
        parameters = [column for column in rows if column not in NOT_PARAMETERS]
        columns[path.stem] = rows.set_index(parameters)["objective"]
    return pd.DataFrame(columns).dropna()


def _row(program: str, split: str) -> Row:
    table = table_of(program)
    ours = np.array([regrets(table, unseen) for unseen in table])
    default = np.array([default_regret(table, unseen) for unseen in table])
    figures = {
        f"{name}_regret_after_{count}": float(of(ours[:, place]))
        for place, count in enumerate(TRIALS)
        for name, of in (("mean", np.mean), ("median", np.median))
    }
    holds = figures["mean_regret_after_5"] < default.mean()
    baselines = {
        "per-program default": {"mean_regret": float(default.mean()), "median_regret": float(np.median(default))}
    }
    return Row(
        f"variants of {program}",
        f"leave an input out of {table.shape[1]}, {split}",
        table.size,
        figures,
        "ahead of the per-program default after 5 trials",
        bool(holds),
        baselines,
    )


def regrets(table: pd.DataFrame, unseen: str) -> Floats:
    """Objective over the best one, minus 1, of what the chooser would use after each count of TRIALS."""
    variants: list[Configuration] = [dict(zip(table.index.names, row, strict=True)) for row in table.index]
    place_of = {id(variant): place for place, variant in enumerate(variants)}
    others = {name: Context(name) for name in table if name != unseen}
    chooser = VariantChooser(variants).learn(
        Experience(context, variant, objective)
        for name, context in others.items()
        for variant, objective in zip(variants, table[name].tolist(), strict=True)
    )
    context, truth, regret_by_count = Context(unseen), table[unseen].to_numpy(), []
    for count in range(max(TRIALS) + 1):
        if count in TRIALS:
            regret_by_count.append(truth[place_of[id(chooser.best(context).variant)]] / truth.min() - 1)
        [tried] = chooser.suggest(context)
        chooser.observe([Experience(context, tried, float(truth[place_of[id(tried)]]))])
    return np.array(regret_by_count)


def default_regret(table: pd.DataFrame, unseen: str) -> float:
    """The same of the variant that is best for the other inputs."""
    default = np.log(table.drop(columns=unseen)).mean(axis=1).to_numpy().argmin()
    return float(table[unseen].iloc[default] / table[unseen].min() - 1)


_SPLITS = {"looked at": DEVELOPED, "kept aside": KEPT_ASIDE}
