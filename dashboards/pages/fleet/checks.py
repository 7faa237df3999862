"""The Checks page: measurements of allocations before their jobs, compared with the fleet's history."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.checks import checked_values, place_of
from crosswind.dashboards.pages.page import FLEET, Page, PageQuery, Place
from crosswind.dashboards.wording import count
from crosswind.data.schema.errors import MalformedError, NotFoundError
from crosswind.data.schema.hostlist import compress
from crosswind.data.schema.words import words
from crosswind.models.preflight.findings import Finding
from crosswind.models.preflight.past import CHECKS, PastCheck, checked_systems, past_checks

SHOWN, MOST_SHOWN = 20, 500


@dataclass(frozen=True)
class CheckRow:
    """One check of the list."""

    check_id: str
    at_ns: int
    job_id: str | None
    nodes: int
    first_node: str
    values: int
    slow: int
    excluded: tuple[str, ...]


@dataclass(frozen=True)
class FindingRow:
    """One value of the check selected."""

    where: str
    finding: Finding


@dataclass(frozen=True)
class ReasonRow:
    """The reason to leave out a node."""

    node: str
    reason: str


@dataclass(frozen=True)
class ChecksView:
    """The page's contents; of the selected check's `values` the worst are in `findings`."""

    sentence: str
    system: str | None
    systems: tuple[str, ...]
    checks: tuple[CheckRow, ...]
    selected: CheckRow | None
    findings: tuple[FindingRow, ...]
    reasons: tuple[ReasonRow, ...]
    exclude: str
    notes: tuple[str, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Checks"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return self.selected is None


def view(client: Local, query: PageQuery) -> ChecksView:
    """Return the newest checks of a system, and one of them in detail. Raises: NotFoundError."""
    limit = query.amount("limit", SHOWN, most=MOST_SHOWN)
    checked = client.compute(client.store, checked_systems)
    system = query.word("system") or (checked[0] if checked else None)
    checks = client.compute(client.store, past_checks, system) if system in checked and system else ()
    systems = tuple(sorted({*checked, *([system] if system else [])}))
    selected = _selected(checks, query.word("check"))
    if selected is None:
        return ChecksView("", system, systems, (), None, (), (), "", (), ())
    verdict = selected.verdict
    chart = checked_values(verdict.findings)
    worst = sorted(
        verdict.findings, key=lambda finding: (not finding.is_slow, finding.z if finding.z is not None else 0.0)
    )
    return ChecksView(
        sentence=_sentence(selected),
        system=system,
        systems=systems,
        checks=tuple(map(_row, checks)),
        selected=_row(selected),
        findings=tuple(FindingRow(place_of(finding), finding) for finding in worst[:limit]),
        reasons=tuple(ReasonRow(blame.node, f"{words(blame.measure)}: {blame.reason}") for blame in verdict.blames),
        exclude=_exclude(verdict.excluded),
        notes=verdict.notes,
        charts=() if chart is None else (chart,),
    )


PAGE = Page(
    "checks",
    "/checks",
    "checks.html",
    view,
    FLEET,
    label="Checks",
    table="findings",
    fill="srun crosswind check",
    hint="Measure your nodes",
)


def _selected(checks: Sequence[PastCheck], wanted: str | None) -> PastCheck | None:
    if wanted is None:
        return checks[0] if checks else None
    for check in checks:
        if check.check_id == wanted:
            return check
    raise NotFoundError(f"check {wanted[:60]!r} is not among the newest {CHECKS} of its system")


def _row(check: PastCheck) -> CheckRow:
    verdict = check.verdict
    slow = sum(finding.is_slow for finding in verdict.findings)
    counts = (len(check.nodes), check.nodes[0] if check.nodes else "", len(verdict.findings), slow)
    return CheckRow(check.check_id, check.at_ns, check.job_id, *counts, verdict.excluded)


def _exclude(nodes: Sequence[str]) -> str:
    try:
        return f"--exclude={compress(nodes)}" if nodes else ""
    except MalformedError:  # a name that Slurm would not take
        return ""


def _sentence(check: PastCheck) -> str:
    verdict = check.verdict
    compared = [finding for finding in verdict.findings if finding.expected is not None]
    checked = count(len(check.nodes), "node")
    if verdict.excluded:
        named = ", ".join(verdict.excluded[:3]) + (" and more" if len(verdict.excluded) > 3 else "")
        return f"{len(verdict.excluded)} of {checked} should be left out: {named}."
    if verdict.blames:
        return f"{verdict.blames[0].node} is slower than it was. No other node is known that could take its place."
    if not compared:
        return f"There is no history to compare {checked} with yet, so none is blamed."
    slow = sum(finding.is_slow for finding in compared)
    if slow:
        return f"{count(slow, 'slow value')} on {checked}, not attributable to a single node."
    return f"{checked[:1].upper()}{checked[1:]} measured as usual."
