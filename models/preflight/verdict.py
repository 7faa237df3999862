"""The nodes that a job should exclude, the reasons, and what could not be decided."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.checks import QUANTITIES, Measured
from crosswind.models.preflight.blame import Blame, for_failures, for_links, for_missing, for_values
from crosswind.models.preflight.findings import Finding, finding
from crosswind.models.preflight.references import Basis, References


@dataclass(frozen=True)
class Verdict:
    """The findings of a check; `excluded` are the nodes blamed, `notes` what could not be decided.

    The only node of a system is blamed, but not excluded: nothing could run elsewhere.
    """

    findings: tuple[Finding, ...]
    blames: tuple[Blame, ...]
    excluded: tuple[str, ...]
    notes: tuple[str, ...]


def judged(
    nodes: Sequence[str],
    measured: Sequence[Measured],
    failures: Iterable[tuple[str, str, str]],
    history: Iterable[EarlierChecks],
) -> Verdict:
    """The verdict on these nodes; `failures` are node, measure and reason.

    A node is blamed for a value that is worse than usual by four spreads, where at least five earlier nodes, five
    earlier checks or three other nodes say what is usual, unless more than half of the nodes are as slow: that has
    another cause. For the network it is blamed where all of its links are slow and two partners have others that are
    not. For a measure that failed, or a GPU that is not seen, it is blamed where all others, three at least, have it.
    """
    earlier = tuple(history)
    references = References(earlier, measured)
    compared = [measurement for measurement in measured if measurement.measure in QUANTITIES and measurement.value > 0]
    findings = tuple(finding(measurement, references) for measurement in compared)
    notes: list[str] = []
    blames = [
        *for_values(nodes, findings, notes),
        *for_links(findings, notes),
        *for_failures(nodes, findings, failures, notes),
        *for_missing(nodes, findings),
    ]
    unknown = sorted({comparison.measure for comparison in findings if comparison.basis is Basis.NOBODY})
    if unknown:
        notes.append(
            f"nothing says what is usual of {', '.join(unknown)}: expected 5 earlier nodes or checks of this system, "
            "method and hardware, or 4 nodes in this check"
        )
    places = {*nodes, *(place for checks in earlier for place in (checks.node, checks.peer) if place)}
    excluded = sorted({blame.node for blame in blames}) if len(places) > 1 else []
    return Verdict(findings, tuple(blames), tuple(excluded), tuple(notes))
