"""Tuning in Python: three lines for a search that job scripts on other nodes may share.

study = crosswind.tune.study("threads", {"threads": [1, 2, 4, 8]}, objective="seconds")
study.optimize(lambda trial: measure(trial["threads"]), trials=4)
print(study.best)
"""

from crosswind.tune.opening import study
from crosswind.tune.studies import FinishedTrial, Study
from crosswind.tune.trials import Trial, TrialInfeasible, TrialPruned

__all__ = ["FinishedTrial", "Study", "Trial", "TrialInfeasible", "TrialPruned", "study"]
