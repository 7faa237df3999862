"""Values compared with their usual ones."""

from dataclasses import dataclass

from crosswind.data.schema.checks import QUANTITIES, Measured
from crosswind.models.preflight.references import Basis, References
from crosswind.models.preflight.usual import Z_SLOW


@dataclass(frozen=True)
class Finding:
    """One value beside what is usual; `ratio` is value over expectation, z below 0 is worse than usual."""

    node: str
    peer: str | None
    device: str | None
    measure: str
    unit: str
    value: float
    expected: float | None
    ratio: float | None
    z: float | None
    is_slow: bool
    basis: Basis
    evidence: int


def finding(value: Measured, references: References) -> Finding:
    """Compare a value with its reference."""
    quantity, reference = QUANTITIES[value.measure], references.of(value)
    expected = reference.usual.value if reference.usual else None
    z = reference.usual.z(value.measure, value.value) if reference.usual else None
    return Finding(
        node=value.node,
        peer=value.peer,
        device=value.device,
        measure=value.measure,
        unit=quantity.unit,
        value=value.value,
        expected=expected,
        ratio=value.value / expected if expected else None,
        z=z,
        is_slow=z is not None and z <= -Z_SLOW,
        basis=reference.basis,
        evidence=reference.evidence,
    )
