"""Causes of other packages, by their entry points."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.models.explain.causes import CAUSES, plugged_in_causes
from crosswind.models.explain.causes.contract import check

SITE = """
from crosswind.models.explain.evidence.indicators import InSegments, Sampled
from crosswind.models.explain.evidence.rate import Rate

LEAKING = Sampled("leaking", (Rate("pump", ("leaked_seconds_total",)),))

class Leak:
    name = "leak"
    next_action = "Close the valve."
    columns = ("leaking",)
    indicators = (LEAKING,)

    def claims(self, excess):
        return {"compute": excess["leaking"]}

    def evidence(self, observed):
        measured, expected = observed.milliseconds("leaking")
        return f"the pump leaked for {measured} a step, expected {expected}"

class Plain: pass
class Taken(Leak): name = "network"
class Other(Leak):
    name, columns = "other_leak", ("throttled",)
    indicators = (Sampled("throttled", (Rate("pump", ("leaked_seconds_total",)),)),)
class Undeclared(Leak):
    name, columns, indicators = "undeclared", ("pressure",), ()
class Phase(Leak):
    name = "phase"
    def claims(self, excess): return {"night": excess["leaking"]}
class Shape(Leak):
    name = "shape"
    def claims(self, excess): return {"compute": 0.0}
class Measure(Leak):
    name = "measure"
    indicators = (LEAKING, InSegments("idling", lambda times: times.idle.sum()))
class Silent(Leak):
    name = "silent"
    def evidence(self, observed): return None
def raising(): raise PermissionError("no licence")
"""
BROKEN = "plain taken other undeclared phase shape measure silent"
EXPLAINED = """
import json, sys
import numpy as np
from crosswind.data.schema.run import Run, RunState
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.explain import explain
from crosswind.models.explain.gaps import gaps_of

def drawn(seed, **means):
    usual = dict.fromkeys(COLUMNS, 0.0) | {"compute": 0.040, "fabric": 0.004} | means
    values = np.tile([usual[name] for name in COLUMNS], (60, 1))
    values[:, COLUMNS.index("compute")] *= np.random.default_rng(seed).normal(1.0, 0.02, 60)
    return Segments(f"run-{seed}", 2, values, np.ones(60), values, count=60)

run = drawn(99, compute=0.070, leaking=0.030)
explanation = explain("r", run, [drawn(seed) for seed in range(8)])
text = [share.evidence for share in explanation.shares if share.cause == "leak"]
gaps = gaps_of(Run("r", "w", "s", RunState.COMPLETED), run)
print(json.dumps([explanation.cause, explanation.next_action, text, "leaking" in COLUMNS, list(gaps)]))
"""


def install(site: Path, points: str) -> None:
    (site / "leaks.py").write_text(SITE)
    package = site / "leaks-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: leaks\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[crosswind.causes]\n{points}")


def test_a_cause_of_another_package_comes_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "leak = leaks:Leak\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    causes, refused = plugged_in_causes()
    assert [cause.name for cause in causes] == ["leak"]
    assert refused == []


def test_a_broken_cause_is_refused_with_the_reason_and_hinders_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "".join(f"{name} = leaks:{name.title()}\n" for name in BROKEN.split())
    install(tmp_path, f"gone = nowhere:Gone\nraising = leaks:raising\n{broken}leak = leaks:Leak\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    causes, refused = plugged_in_causes()
    assert [cause.name for cause in causes] == ["leak"]
    reasons = {cause.name: cause.reason for cause in refused}
    assert "nowhere" in reasons.pop("gone")
    assert reasons.pop("raising") == "PermissionError: no licence"
    assert "without name, next_action, columns, indicators, claims, evidence" in reasons.pop("plain")
    assert "network: its name is taken" in reasons.pop("taken")
    assert "column throttled is other evidence already" in reasons.pop("other")
    assert "columns ['pressure'] are of no indicator" in reasons.pop("undeclared")
    assert "expected claims of shape (3,) by phase, found {'night': (3,)}" in reasons.pop("phase")
    assert "expected claims of shape (3,) by phase, found {'compute': ()}" in reasons.pop("shape")
    assert "expected idling of shape (3,), found " in reasons.pop("measure")
    assert "expected evidence as text, found None" in reasons.pop("silent")
    assert reasons == {}


def test_a_run_is_explained_by_a_cause_of_another_package_and_a_broken_one_is_reported(tmp_path: Path) -> None:
    install(tmp_path, "leak = leaks:Leak\nraising = leaks:raising\n")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{EXPLAINED}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    cause, next_action, text, is_column, gaps = json.loads(done.stdout)
    assert (cause, next_action, is_column) == ("leak", "Close the valve.", True)
    assert text == ["the pump leaked for 30 ms a step, expected 0 ms"]
    assert gaps == ["cause raising of another package is left out: PermissionError: no licence"]
    assert "cause raising (leaks:raising) is left out: PermissionError: no licence" in done.stderr


def test_our_own_causes_keep_the_promises() -> None:
    for place, cause in enumerate(CAUSES):
        check(cause, CAUSES[:place])
