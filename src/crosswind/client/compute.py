"""Ways to compute answers about a whole store: anew, or through a cache that a server has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store

if TYPE_CHECKING:
    from crosswind.data.schema.answers.explanations import Explanation

P = ParamSpec("P")
T = TypeVar("T")
Explain = Callable[[Store, Sequence[Run]], "Mapping[str, Explanation]"]


class Compute(Protocol):
    """Computes the answer of a function about a store, or takes it from a cache."""

    def __call__(
        self, store: Store, question: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the answer; the arguments are hashable."""
        ...


def compute_anew(store: Store, question: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the answer, without a cache."""
    return question(store, *args, **kwargs)


def explain_anew(store: Store, runs: Sequence[Run]) -> Mapping[str, Explanation]:
    """Return an explanation of each of the runs by id, without a cache."""
    from crosswind.models.explain.explain import explain_runs  # noqa: PLC0415 - heavy

    return explain_runs(store, runs)
