"""Results of a check, for people."""

from collections.abc import Iterator, Sequence
from statistics import median

from crosswind.cli.text.output import printable, table
from crosswind.dashboards.wording import count, seconds
from crosswind.data.schema.checks import ALL_REDUCE, QUANTITIES, Measured
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import compress
from crosswind.models.preflight.findings import Finding
from crosswind.models.preflight.references import Basis
from crosswind.models.preflight.report import Report

LINKS_SHOWN = 15  # one by one; of more, the slow ones and the median
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
HEADINGS = ("node", "device", "measure", "value", "usual", "of it", "by", "")


def text(report: Report) -> str:
    """Return tables, then the nodes to leave out with reasons, then notes."""
    return "\n".join([*_head(report), "", *_tables(report), *_verdict(report)])


def exclude_line(nodes: Sequence[str]) -> str:
    """Return Slurm's option that leaves these nodes out; empty for none. Source: sbatch(1), --exclude.

    It leaves out names that are no host names.
    """
    try:
        return f"--exclude={compress(nodes)}" if nodes else ""
    except MalformedError:
        return exclude_line([node for node in nodes if _is_host(node)])


def _is_host(node: str) -> bool:
    try:
        return bool(compress([node]))
    except MalformedError:
        return False


def amount(value: float | None, unit: str) -> str:
    """`312 Gflop/s`, `1.2 GB/s`, `12.3 us`, `1.03`; a dash for none."""
    if value is None:
        return "-"
    if unit == "seconds":
        return seconds(value)
    if unit == "ratio":
        return f"{value:.3f}"
    scale, prefix = next((pair for pair in PREFIXES if value >= pair[0]), (1.0, ""))
    return f"{value / scale:.3g} {prefix}{unit.replace('bytes', 'B')}"


def _head(report: Report) -> Iterator[str]:
    met = f" over {report.method}" if report.method else ""
    ranks = f", {count(report.ranks, 'rank')}{met}" if report.ranks > 1 else ""
    yield printable(f"{report.system}: {count(len(report.nodes), 'node')}{ranks}, {report.seconds:.0f} s")
    yield from (printable(f"note: {note}") for note in report.notes)


def _tables(report: Report) -> Iterator[str]:
    findings = report.verdict.findings
    of_nodes = [finding for finding in findings if not finding.peer]
    links = [link for link in findings if link.peer]
    shown = links if len(links) <= LINKS_SHOWN else [link for link in links if link.is_slow]
    rows = [_row(finding) for finding in (*sorted(of_nodes, key=_place), *sorted(shown, key=_place))]
    if rows:
        yield table(HEADINGS, rows)
    if len(shown) < len(links):
        yield from _medians(links)
    reduced = [measurement for measurement in report.measured if measurement.measure == ALL_REDUCE]
    if reduced:
        yield f"all-reduce, {reduced[0].method}: {', '.join(map(_reduced, reduced))}"


def _row(finding: Finding) -> tuple[str, ...]:
    where = f"{finding.node} - {finding.peer}" if finding.peer else finding.node
    by = f"{finding.evidence} {finding.basis}" if finding.basis is not Basis.NOBODY else "-"
    ratio = f"{finding.ratio:.0%}" if finding.ratio is not None else "-"
    usual = amount(finding.expected, finding.unit)
    mark = "<< slow" if finding.is_slow else ""
    return where, finding.device or "", finding.measure, amount(finding.value, finding.unit), usual, ratio, by, mark


def _medians(links: Sequence[Finding]) -> Iterator[str]:
    for measure in ("latency", "bandwidth"):
        values = sorted(link.value for link in links if link.measure == measure)
        if values:
            low, middle, high = (
                amount(quantile, QUANTITIES[measure].unit) for quantile in (values[0], median(values), values[-1])
            )
            yield f"{measure} of {len(values)} links: {middle} in the median, {low} to {high}"


def _reduced(value: Measured) -> str:
    return f"{(value.size_bytes or 0) >> 10} KiB {seconds(value.value)}"


def _verdict(report: Report) -> Iterator[str]:
    verdict = report.verdict
    yield ""
    yield from (printable(f"{blame.node}: {blame.measure}: {blame.reason}") for blame in verdict.blames)
    yield from (printable(f"undecided: {note}") for note in verdict.notes)
    yield (
        f"leave out: {report.exclude or ', '.join(map(printable, verdict.excluded))}"
        if verdict.excluded
        else _fine(report)
    )


def _fine(report: Report) -> str:
    if report.verdict.blames:
        return "no other node is known, so there is none to use in its place; have it tested"
    if all(finding.basis is Basis.NOBODY for finding in report.verdict.findings):
        return "nothing to compare with, so no node is blamed"
    return "no node is to be left out"


def _place(finding: Finding) -> tuple[str, str, str]:
    return finding.node, finding.peer or "", finding.device or ""
