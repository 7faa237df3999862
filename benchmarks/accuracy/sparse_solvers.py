"""Choice of a solver and preconditioner for a sparse matrix of a kind not learned from, on our own measurements.

A kind is left out as a whole, and the chooser learns from the other kinds. The chooser's design was settled on kinds
left out in turn; those of KEPT_ASIDE were named before they were measured and are scored once, by what was learned
from all others. CG and MINRES are no choice for a matrix that is not symmetric. A pick that did not end within its
limit is a failure, whether it is slow or does not converge: its share is given, and in `mean_regret` it counts as ten
times the best.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.accuracy.row import Row
from crosswind.data.samples.sparse_solvers import sparse_matrices, sparse_solves
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.variants.chooser import VariantChooser
from crosswind.models.tuner.variants.experience import Context, Experience

KEPT_ASIDE = ("mesh_time_step", "mesh_waves", "stokes", "small_world", "loose_chain", "reaction")
FOR_SYMMETRIC = ("cg", "minres")
TRIALS = (0, 1, 2, 3)
FAILED = 9.0  # the regret of a pick that fails
REGRET_ASKED, REGRET_AFTER_TWO_ASKED, FAILURES_ASKED = 0.15, 0.05, 0.02
NOT_FEATURES = ("kind", "seed", "rows", "nonzeros")


@dataclass(frozen=True)
class System:
    """A measured matrix: seconds of each variant, None where it has no solution."""

    kind: str
    context: Context
    seconds: Mapping[tuple[str, str], float | None]

    @property
    def variants(self) -> list[tuple[str, str]]:
        """Those that have a theory for it."""
        return [variant for variant in self.seconds if applies(configuration(variant), self.context)]

    @property
    def best(self) -> float:
        return min(seconds for seconds in self.seconds.values() if seconds is not None)

    def regret(self, variant: tuple[str, str]) -> float:
        """Seconds over the best ones, minus 1; NaN for a failure."""
        seconds = self.seconds[variant]
        return np.nan if seconds is None else seconds / self.best - 1

    def experience(self, variant: tuple[str, str]) -> Experience:
        return Experience(self.context, configuration(variant), self.seconds[variant])


def rows() -> list[Row]:
    """Both splits, beside the best single variant, a rule of thumb and chance."""
    systems = measured()
    development = [system for system in systems if system.kind not in KEPT_ASIDE]
    aside = [system for system in systems if system.kind in KEPT_ASIDE]
    folds = [
        ([system for system in development if system.kind != kind], kind)
        for kind in sorted({system.kind for system in development})
    ]
    developed = [(learned, [system for system in development if system.kind == kind]) for learned, kind in folds]
    return [
        _row("solvers, kinds left out in turn", "leave a kind out, development kinds", developed),
        _row("solvers, kinds kept aside", "kinds not looked at: " + ", ".join(KEPT_ASIDE), [(development, aside)]),
    ]


def measured() -> list[System]:
    matrices, solves = sparse_matrices(), sparse_solves()
    names = [column for column in matrices if column not in NOT_FEATURES]
    variants = sorted(set(zip(solves["solver"], solves["preconditioner"], strict=True)))
    by_matrix = dict(list(solves.groupby(["kind", "seed"])))
    return [_system(row, names, variants, by_matrix[row["kind"], row["seed"]]) for row in matrices.to_dict("records")]


def _system(
    row: Mapping[str, object], names: Sequence[str], variants: Sequence[tuple[str, str]], solves: pd.DataFrame
) -> System:
    solve_seconds = {
        (solver, preconditioner): seconds
        for solver, preconditioner, seconds in zip(
            solves["solver"], solves["preconditioner"], solves["seconds"].tolist(), strict=True
        )
        if np.isfinite(seconds)
    }
    context = Context(f"{row['kind']} {row['seed']}", {name: float(str(row[name])) for name in names})
    return System(str(row["kind"]), context, {variant: solve_seconds.get(variant) for variant in variants})


def applies(variant: Configuration, context: Context) -> bool:
    """Return whether the variant has a theory for the matrix."""
    return variant["solver"] not in FOR_SYMMETRIC or context.features["is_symmetric"] == 1


def configuration(variant: tuple[str, str]) -> Configuration:
    return {"solver": variant[0], "preconditioner": variant[1]}


def _row(task: str, split: str, folds: Sequence[tuple[list[System], list[System]]]) -> Row:
    ours = [picks(learned, system) for learned, system in _chosen(folds)]
    figures = {
        f"{name}_after_{count}": value for count in TRIALS for name, value in _regrets_after(ours, count).items()
    }
    holds = (
        figures["mean_regret_after_0"] <= REGRET_ASKED
        and figures["mean_regret_after_2"] <= REGRET_AFTER_TWO_ASKED
        and figures["failures_after_0"] <= FAILURES_ASKED
    )
    asked = "mean regret <= 15 % without a trial, <= 5 % after two, failures <= 2 %"
    return Row(task, split, len(ours), figures, asked, holds, baselines(folds))


def _chosen(folds: Sequence[tuple[list[System], list[System]]]) -> Iterator[tuple[VariantChooser, System]]:
    """The same chooser for all systems of a fold: what is tried on one teaches it nothing about another."""
    for learned, scored in folds:
        variants = [configuration(variant) for variant in learned[0].seconds]
        experiences = [system.experience(variant) for system in learned for variant in system.variants]
        chooser = VariantChooser(variants, applies=applies).learn(experiences)
        yield from ((chooser, system) for system in scored)


def picks(chooser: VariantChooser, system: System) -> list[float]:
    """The regret of what it would use after each count of TRIALS on this system, NaN for a failure."""
    regrets = []
    for _ in TRIALS:
        regrets.append(system.regret(_variant(chooser.best(system.context).variant)))
        [tried] = chooser.suggest(system.context)
        chooser.observe([system.experience(_variant(tried))])
    return regrets


def _variant(configured: Configuration) -> tuple[str, str]:
    return str(configured["solver"]), str(configured["preconditioner"])


def _regrets_after(regrets: Sequence[Sequence[float]], count: int) -> dict[str, float]:
    return _summary(np.array([of_system[TRIALS.index(count)] for of_system in regrets]))


def _summary(regrets: Floats) -> dict[str, float]:
    failed = np.isnan(regrets)
    return {
        "mean_regret": float(np.where(failed, FAILED, regrets).mean()),
        "median_regret": float(np.median(np.where(failed, FAILED, regrets))),
        "failures": float(failed.mean()),
    }


def baselines(folds: Sequence[tuple[list[System], list[System]]]) -> dict[str, dict[str, float]]:
    """The same figures for picks that look at less, without a trial."""
    scored = [(learned, system) for learned, systems in folds for system in systems]
    singles = [system.regret(_single(learned)) for learned, system in scored]
    rules = [system.regret(rule_of_thumb(system.context)) for _, system in scored]
    regrets = np.array([[system.regret(variant) for variant in system.seconds] for _, system in scored])
    chance = np.where(np.isnan(regrets), FAILED, regrets)
    return {
        "best single variant": _summary(np.array(singles)),
        "rule of thumb": _summary(np.array(rules)),
        "random": {"mean_regret": float(chance.mean()), "failures": float(np.isnan(regrets).mean())},
    }


def _single(learned: Sequence[System]) -> tuple[str, str]:
    """The variant of the least mean regret over all, failures as FAILED."""
    regrets = {
        variant: np.mean([np.nan_to_num(system.regret(variant), nan=FAILED) for system in learned])
        for variant in learned[0].seconds
    }
    return min(regrets, key=lambda variant: float(regrets[variant]))


def rule_of_thumb(context: Context) -> tuple[str, str]:
    """Return textbook advice: multigrid with CG if symmetric and positive, direct if small, else BiCGSTAB and ILU."""
    features = {name: float(value) for name, value in context.features.items()}
    if features["log_rows"] < np.log(10_000):
        return "direct", "mmd" if features["symmetric_pattern_ratio"] > 0.9 else "colamd"
    if features["is_symmetric"] and features["positive_diagonal_ratio"] == 1:
        return "cg", "amg_aggregation"
    return "bicgstab", "ilu_tight"
