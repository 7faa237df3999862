"""Boosted trees as arrays, which predict without XGBoost: importing that takes longer than many an answer."""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats

if TYPE_CHECKING:  # heavy
    import xgboost as xgb

NO_CHILD = -1


@dataclass(frozen=True)
class Trees:
    """The nodes of all trees one after the other; arrays have shape (n_nodes,) unless said otherwise.

    Like XGBoost, which trained them, they compare and add numbers of 32 bits.
    """

    roots: NDArray[np.int64]  # (n_trees,)
    outputs: NDArray[np.int64]  # (n_trees,): the column of the prediction that each tree adds to
    left: NDArray[np.int64]  # place of the child for values below the threshold; NO_CHILD in leaves
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float32]  # the value in leaves
    is_missing_left: NDArray[np.bool_]
    base: Floats  # (n_outputs,)
    depth: int

    @classmethod
    def of(cls, booster: "xgb.Booster", n_features: int) -> Self:
        """Take the trees of a booster that was trained on so many features."""
        model = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]["model"]
        trees, outputs = model["trees"], np.array(model["tree_info"], dtype=np.int64)
        sizes = np.array([len(tree["left_children"]) for tree in trees], dtype=np.int64)
        roots = np.cumsum(sizes) - sizes
        joined = {name: _joined(trees, name) for name in ("split_indices", "split_conditions", "default_left")}
        left, right = (_places(trees, roots, name) for name in ("left_children", "right_children"))
        probe = np.zeros((1, n_features))
        whole = np.atleast_2d(np.asarray(booster.inplace_predict(probe), dtype=np.float64)).reshape(-1)
        made = cls(
            roots,
            outputs,
            left,
            right,
            feature=joined["split_indices"].astype(np.int64),
            threshold=joined["split_conditions"].astype(np.float32),
            is_missing_left=joined["default_left"].astype(np.bool_),
            base=np.zeros(len(whole)),
            depth=_depth(left, right, roots),
        )
        return replace(made, base=whole - made.sums(probe)[0])

    def inplace_predict(self, rows: Floats) -> Floats:
        """As a booster: predictions of rows (n_rows, n_features), NaN where missing; (n_rows,) of a single output."""
        values = self.base + self.sums(rows)
        return values[:, 0] if len(self.base) == 1 else values

    def sums(self, rows: Floats) -> Floats:
        """The leaves that rows end in, added up, (n_rows, n_outputs)."""
        narrow = rows.astype(np.float32)
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        every = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            values = narrow[every, self.feature[at]]
            is_left = np.where(np.isnan(values), self.is_missing_left[at], values < self.threshold[at])
            child = np.where(is_left, self.left[at], self.right[at])
            at = np.where(child == NO_CHILD, at, child)
        leaves = self.threshold[at].astype(np.float64)
        return np.stack([leaves[:, self.outputs == place].sum(axis=1) for place in range(len(self.base))], axis=1)


def _depth(left: NDArray[np.int64], right: NDArray[np.int64], roots: NDArray[np.int64]) -> int:
    """Return the number of decisions on the longest way from a root to a leaf."""
    at, depth = roots, -1
    while len(at):
        below = np.concatenate([left[at], right[at]])
        at, depth = below[below != NO_CHILD], depth + 1
    return max(depth, 0)


def _joined(trees: list[dict[str, list[float]]], name: str) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(tree[name], dtype=np.float64) for tree in trees] or [np.zeros(0)])


def _places(trees: list[dict[str, list[int]]], roots: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Return the children's places among the nodes of all trees."""
    own = [np.asarray(tree[name], dtype=np.int64) for tree in trees]
    moved = [
        np.where(children == NO_CHILD, NO_CHILD, children + root) for children, root in zip(own, roots, strict=True)
    ]
    return np.concatenate(moved or [np.zeros(0, dtype=np.int64)])
