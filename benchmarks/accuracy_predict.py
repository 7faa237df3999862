"""Accuracy of predictions of runs to come: every task, its split, its baselines and what was asked of it.

Rows come from `benchmarks/accuracy/`, a file a source of data; sources that are not beside the repository are left out.
"""

from benchmarks.accuracy.table import tell

SOURCES = ("mlperf", "vtrain", "zeus", "power", "lab_before", "lab_during", "weather")


def main() -> None:
    tell(SOURCES, processes=2)  # MLPerf's stores take as long as all others together


if __name__ == "__main__":
    main()
