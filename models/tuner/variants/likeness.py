"""The likeness of a new context to earlier ones, by their features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.columns import Columns
from crosswind.models.tuner.variants.experience import Context

Integers: TypeAlias = npt.NDArray[np.int64]
TREES = 100
FEATURES_TRIED = 0.25  # of the features, at each split


@dataclass(frozen=True)
class Likeness:
    """Trees over features whose leaves hold contexts in which the same variants are good.

    Source: Meinshausen 2006, "Quantile regression forests": a new row's weight on a row learned from is how often both
    share a leaf.
    """

    columns: Columns
    medians: Floats
    trees: "Trees"
    leaves: Integers  # (n, trees)

    @classmethod
    def of(cls, contexts: Sequence[Context], log_regret: Floats, seed: int) -> Self:
        """Fit the trees to what the variants cost, (n, m)."""
        table = pd.DataFrame([dict(context.features) for context in contexts])
        columns = Columns.of(table)
        matrix = columns.matrix(table)
        medians = np.nan_to_num(np.nanmedian(matrix, axis=0))
        full = np.where(np.isnan(matrix), medians, matrix)
        forest = ExtraTreesRegressor(TREES, max_features=FEATURES_TRIED, random_state=seed).fit(full, log_regret)
        trees = Trees.of(forest)
        return cls(columns, medians, trees, forest.apply(full) + trees.roots)

    def weights(self, context: Context) -> Floats:
        """Return each context's probability to be like this one, shape (n,); they sum to 1."""
        same = self.leaves == self.trees.leaves(self._features(context))
        return np.asarray((same / same.sum(axis=0)).mean(axis=1))

    def _features(self, context: Context) -> Floats:
        """Return features of shape (k,), the median where one is missing; further ones are left out."""
        row = {name: context.features.get(name, np.nan) for name in self.columns.categories}
        if len(row) == len(self.medians) and all(isinstance(value, int | float) for value in row.values()):
            values = np.array(list(row.values()), dtype=np.float64)  # a table would take longer than all the rest
        else:
            values = self.columns.matrix(pd.DataFrame([row]))[0]
        return np.where(np.isnan(values), self.medians, values)


@dataclass(frozen=True)
class Trees:
    """The trees of a forest in one table of nodes, to take a single row down all of them at once.

    scikit-learn needs milliseconds for a row, which is more than the features may cost. A leaf is its own child.
    """

    roots: Integers
    feature: Integers
    threshold: Floats
    children: Integers  # (2, nodes), left and right
    depth: int

    @classmethod
    def of(cls, forest: ExtraTreesRegressor) -> Self:
        """Take the trees of a fitted forest."""
        trees = [estimator.tree_ for estimator in forest.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
        children = np.hstack([_children(tree, root) for tree, root in zip(trees, roots.tolist(), strict=True)])
        feature = np.maximum(np.concatenate([tree.feature for tree in trees]), 0)
        threshold = np.concatenate([tree.threshold for tree in trees])
        return cls(roots, feature, threshold, children, max(tree.max_depth for tree in trees))

    def leaves(self, row: Floats) -> Integers:
        """Return the node at which the row ends in each tree, numbered over all trees."""
        numbers, nodes = row.astype(np.float32), self.roots  # as scikit-learn compares
        for _ in range(self.depth):
            is_right = numbers[self.feature[nodes]] > self.threshold[nodes]
            nodes = self.children[is_right.astype(np.int64), nodes]
        return nodes


def _children(tree: object, root: int) -> Integers:
    """Return the left and right children of a tree's nodes, numbered from the root on."""
    both = np.vstack([tree.children_left, tree.children_right])  # type: ignore[attr-defined]
    return np.where(both < 0, np.arange(both.shape[1]), both) + root
