"""Linear algebra is limited inside, and as before afterwards."""

import numpy as np
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from crosswind.models.gp.one_thread import one_thread


def _threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_thread_inside_and_as_many_as_before_afterwards() -> None:
    np.eye(2) @ np.eye(2)
    before = _threads()
    for _ in range(2):
        with one_thread():
            assert set(_threads()) == {1}
        assert _threads() == before
