"""Slow compute: the last rank to arrive needed more CPU time for the same step."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed


class SlowCompute:
    """Claims user CPU time beyond the expected: a lower clock, a colder cache, a busier memory bus, or more work."""

    name = "slow_compute"
    next_action = "Compare that node's clocks and memory bandwidth with its peers', and its share of the data."
    columns = ("cpu_user",)
    indicators = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, as far as user time grew."""
        return {"compute": excess["cpu_user"]}

    def evidence(self, observed: Observed) -> str:
        """Return user CPU time."""
        measured, expected = observed.milliseconds("cpu_user")
        return f"{measured} of user CPU time a step, expected {expected}"
