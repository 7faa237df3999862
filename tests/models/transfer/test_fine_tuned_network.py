"""The network that torch trains and numpy answers for."""

import builtins
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.models.transfer.fine_tuned_network import FineTunedNetwork

MakeCase = Callable[..., Any]


def test_without_torch_it_says_what_to_install(make_case: MakeCase, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_torch(name: str, *given: Any, **named: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return real(name, *given, **named)

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_torch)
    case = make_case(runs=1)
    with pytest.raises(UnavailableError, match=r"needs torch.*pip install 'crosswind\[torch\]'"):
        FineTunedNetwork("system").fit(case.source, case.source_seconds, case.target, case.target_seconds)


@pytest.mark.thorough
def test_fine_tuning_moves_towards_the_target(make_case: MakeCase) -> None:
    pytest.importorskip("torch")
    errors = {}
    for runs in (0, 10):
        case = make_case(runs=runs)
        model = FineTunedNetwork("system", source_steps=250, target_steps=60)
        model.fit(case.source, case.source_seconds, case.target, case.target_seconds)
        errors[runs] = float(np.median(np.abs(np.log(model.predict(case.asked).at(0.5) / case.answer))))
    assert errors[0] > 0.9  # the source's third of the target's time: log 3 = 1.1
    assert errors[10] < 0.2
