"""Choice of a solver and preconditioner for a sparse matrix of a kind not learned from, on our own measurements.

A kind is left out as a whole; the chooser learns from the other kinds and from the matrices COMPOSED at random, on
which nothing is scored. Its design was settled on kinds left out in turn; those of KEPT_ASIDE were named before they
were measured and are scored by what was learned from all others. CG and MINRES are no choice for a matrix that is not
symmetric. A pick that did not end within its limit is a failure, whether it is slow or does not converge: its share is
given, and in `mean_regret` it counts as ten times the best. Where the choice by the first features is unsure, further
ones are taken, as they are after a trial. `with_features` adds the seconds of both over those of the best solve, timed
on the same machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks.accuracy.row import Row
from crosswind.data.samples.sparse_solvers import sparse_matrices, sparse_solves
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.variants.chooser import VariantChooser
from crosswind.models.tuner.variants.experience import Choice, Context, Experience

COMPOSED = "composed"
KEPT_ASIDE = ("mesh_time_step", "mesh_waves", "stokes", "small_world", "loose_chain", "reaction")
FOR_SYMMETRIC = ("cg", "minres")
TRIALS = (0, 1, 2, 3)
LEVELS = {"p25": 0.25, "median": 0.5, "p75": 0.75, "p90": 0.9, "max": 1.0}
FAILED = 9.0  # the regret of a pick that fails
UNSURE = 1.0  # expected regret of the pick by the first features, above which further ones are worth their time
REGRETS_ASKED, FAILURES_ASKED = (0.15, 0.05, 0.02), 0.02
NOT_FEATURES = ("kind", "seed", "rows", "nonzeros", "feature_seconds", "further_seconds", "solve_seconds")
FURTHER = ("jacobi", "plain", "probed", "rise", "curvature_min_late")  # in the names of further features


@dataclass(frozen=True)
class System:
    """A measured matrix: seconds of each variant, None where it has no solution.

    The first features and all of them cost these shares of the best solve.
    """

    kind: str
    first: Context
    context: Context
    seconds: Mapping[tuple[str, str], float | None]
    first_cost: float
    cost: float

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

    def experience(self, variant: tuple[str, str], context: Context) -> Experience:
        return Experience(context, configuration(variant), self.seconds[variant])


@dataclass(frozen=True)
class StagedChooser:
    """Chooses by the first features, and where that is unsure, or after a trial, by all of them."""

    first: VariantChooser
    further: VariantChooser

    @classmethod
    def learned(cls, systems: Sequence[System], seed: int = 0) -> Self:
        variants = [configuration(variant) for variant in systems[0].seconds]
        first, further = (VariantChooser(variants, seed, applies=applies) for _ in range(2))
        pairs = [(system, variant) for system in systems for variant in system.variants]
        first.learn(system.experience(variant, system.first) for system, variant in pairs)
        further.learn(system.experience(variant, system.context) for system, variant in pairs)
        return cls(first, further)

    def choose(self, system: System) -> tuple[Choice, float]:
        """Return the pick without a trial, and what the features for it cost."""
        choice = self.first.best(system.first)
        if choice.expected_regret <= UNSURE:
            return choice, system.first_cost
        return self.further.best(system.context), system.cost


def rows() -> list[Row]:
    """Both splits, beside the best single variant, a rule of thumb and chance."""
    systems = measured()
    composed = [system for system in systems if system.kind == COMPOSED]
    development = [system for system in systems if system.kind not in (COMPOSED, *KEPT_ASIDE)]
    aside = [system for system in systems if system.kind in KEPT_ASIDE]
    folds = [
        Fold(
            [*(system for system in development if system.kind != kind), *composed],
            [system for system in development if system.kind == kind],
        )
        for kind in sorted({system.kind for system in development})
    ]
    bare = [Fold([system for system in fold.learned if system.kind != COMPOSED], fold.scored) for fold in folds]
    return [
        _row("solvers, kinds left out in turn", "leave a kind out, development kinds", folds),
        _row("solvers, the same without composed matrices", "leave a kind out, development kinds", bare),
        _row(
            "solvers, kinds kept aside",
            "kinds not looked at: " + ", ".join(KEPT_ASIDE),
            [Fold([*development, *composed], aside)],
        ),
    ]


@dataclass(frozen=True)
class Fold:
    """Systems to learn from, and others to choose for."""

    learned: Sequence[System]
    scored: Sequence[System]


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
    number = {name: float(str(value)) for name, value in row.items() if name != "kind"}
    first = [name for name in names if not any(word in name for word in FURTHER)]
    label = f"{row['kind']} {row['seed']}"
    first_cost = number["feature_seconds"] / number["solve_seconds"]
    return System(
        str(row["kind"]),
        Context(label, {name: number[name] for name in first}),
        Context(label, {name: number[name] for name in names}),
        {variant: solve_seconds.get(variant) for variant in variants},
        first_cost,
        first_cost + number["further_seconds"] / number["solve_seconds"],
    )


def applies(variant: Configuration, context: Context) -> bool:
    """Return whether the variant has a theory for the matrix."""
    return variant["solver"] not in FOR_SYMMETRIC or context.features["is_symmetric"] == 1


def configuration(variant: tuple[str, str]) -> Configuration:
    return {"solver": variant[0], "preconditioner": variant[1]}


def _row(task: str, split: str, folds: Sequence[Fold]) -> Row:
    chosen = list(_chosen(folds))
    regrets = np.array([picks(chooser, system) for chooser, system in chosen])
    costs = np.array([chooser.choose(system)[1] for chooser, system in chosen])
    figures = {
        f"{name}_after_{count}": value
        for place, count in enumerate(TRIALS)
        for name, value in _summary(regrets[:, place]).items()
    }
    figures["mean_regret_with_features"] = figures["mean_regret_after_0"] + float(costs.mean())
    figures |= {f"feature_cost_{name}": float(np.quantile(costs, level)) for name, level in LEVELS.items()}
    holds = figures["failures_after_0"] <= FAILURES_ASKED and all(
        figures[f"mean_regret_after_{count}"] <= asked for count, asked in zip(TRIALS, REGRETS_ASKED, strict=False)
    )
    asked = "mean regret <= 15 % without a trial, <= 5 % after one, <= 2 % after two, failures <= 2 %"
    return Row(task, split, len(chosen), figures, asked, holds, baselines(folds))


def _chosen(folds: Sequence[Fold]) -> Iterator[tuple[StagedChooser, System]]:
    """The same chooser for all systems of a fold: what is tried on one teaches it nothing about another."""
    for fold in folds:
        chooser = StagedChooser.learned(fold.learned)
        yield from ((chooser, system) for system in fold.scored)


def picks(chooser: StagedChooser, system: System) -> list[float]:
    """The regret of what it would use after each count of TRIALS on this system, NaN for a failure."""
    choice = chooser.choose(system)[0].variant
    regrets, tried = [system.regret(_variant(choice))], choice
    for _ in TRIALS[1:]:
        chooser.further.observe([system.experience(_variant(tried), system.context)])
        regrets.append(system.regret(_variant(chooser.further.best(system.context).variant)))
        [tried] = chooser.further.suggest(system.context)
    return regrets


def _variant(configured: Configuration) -> tuple[str, str]:
    return str(configured["solver"]), str(configured["preconditioner"])


def _summary(regrets: Floats) -> dict[str, float]:
    failed = np.isnan(regrets)
    return {
        "mean_regret": float(np.where(failed, FAILED, regrets).mean()),
        "median_regret": float(np.median(np.where(failed, FAILED, regrets))),
        "failures": float(failed.mean()),
    }


def baselines(folds: Sequence[Fold]) -> dict[str, dict[str, float]]:
    """The same figures for picks that look at less, without a trial."""
    scored = [(fold.learned, system) for fold in folds for system in fold.scored]
    singles = [
        system.regret(variant) for fold in folds for variant in [_single(fold.learned)] for system in fold.scored
    ]
    neighbours = [regret for fold in folds for regret in _by_neighbour(fold)]
    rules = [system.regret(rule_of_thumb(system.context)) for _, system in scored]
    regrets = np.array([[system.regret(variant) for variant in system.seconds] for _, system in scored])
    chance = np.where(np.isnan(regrets), FAILED, regrets)
    return {
        "best single variant": _summary(np.array(singles)),
        "nearest neighbour": _summary(np.array(neighbours)),
        "rule of thumb": _summary(np.array(rules)),
        "random": {"mean_regret": float(chance.mean()), "failures": float(np.isnan(regrets).mean())},
    }


def _by_neighbour(fold: Fold) -> Iterator[float]:
    """The regret of the best variant of the nearest matrix learned from that may be used, by all features, scaled."""
    learned, scored = (
        [list(system.context.features.values()) for system in part] for part in (fold.learned, fold.scored)
    )
    scaler = StandardScaler().fit(learned)
    nearest = NearestNeighbors(n_neighbors=1).fit(scaler.transform(learned))
    places = nearest.kneighbors(scaler.transform(scored), return_distance=False)[:, 0]
    for system, place in zip(fold.scored, places.tolist(), strict=True):
        there = fold.learned[place].seconds
        yield system.regret(min(system.variants, key=lambda variant: there[variant] or np.inf))


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
