"""Limits on one statement and the process that runs it."""

from dataclasses import dataclass

MIB = 1024 * 1024
ROWS, ROWS_MAX = 1000, 10_000
QUERY_MAX = 20_000  # characters
PARAMETERS_MAX = 200


@dataclass(frozen=True)
class SqlLimits:
    """Limits on one statement.

    `handed_bytes` of rows go to its process, `memory_bytes` more are for the computation, and nothing goes to disk.
    """

    seconds: float = 30.0
    handed_bytes: int = 256 * MIB
    memory_bytes: int = 256 * MIB
    result_bytes: int = 16 * MIB
    threads: int = 2


LIMITS = SqlLimits()
