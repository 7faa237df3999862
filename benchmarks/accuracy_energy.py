"""Accuracy of predicted energy and power, of nodes that were metered and from device to device."""

from benchmarks.accuracy.table import tell

SOURCES = ("power", "zeus")


def main() -> None:
    tell(SOURCES)


if __name__ == "__main__":
    main()
