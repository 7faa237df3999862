"""Accuracy of predicting a machine that has hardly run anything from others: from no point of its own to ten."""

from benchmarks.accuracy.table import tell

SOURCES = ("zeus", "transfer")


def main() -> None:
    tell(SOURCES)


if __name__ == "__main__":
    main()
