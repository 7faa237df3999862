"""Software: runs with this run's versions take longer than the others of their cohort."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, beyond_usual
from crosswind.models.explain.evidence.indicators import RunsAlike

SOFTWARE = RunsAlike("software", lambda runs: [tuple(sorted(compared.run.software.items())) for compared in runs])


class SoftwareChange:
    """Claims by how much other runs with the same software lie above the cohort's usual time, phase by phase."""

    name = "software_change"
    next_action = (
        "Compare the software of this run with that of a quicker one (crosswind compare RUN OTHER) and pin the "
        "versions that were quicker."
    )
    columns = ("compute", "fabric")
    indicators = (SOFTWARE,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute and the fabric's time, where the difference is more than runs alike differ by."""
        return beyond_usual(excess, SOFTWARE)

    def evidence(self, observed: Observed) -> str:
        """Return the time that runs alike take."""
        measured, expected = observed.milliseconds(*SOFTWARE.columns)
        return f"other runs with the same software take {measured} a step, expected {expected}"
