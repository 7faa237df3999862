"""Suspects blamed for slow runs, and counters named: false alarms and power beside plain correlation."""

from benchmarks.accuracy.table import tell

SOURCES = ("interference",)


def main() -> None:
    tell(SOURCES)


if __name__ == "__main__":
    main()
