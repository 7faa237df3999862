"""The look of a verdict in a figure: by colour, by symbol and by word."""

from dataclasses import dataclass

from crosswind.dashboards.palette import GREEN, ORANGE, PEER, VERMILION
from crosswind.data.schema.answers.explanations import Verdict


@dataclass(frozen=True)
class Look:
    """The marks of one verdict."""

    word: str
    colour: str
    symbol: str


LOOKS = {
    Verdict.SLOW: Look("slow", VERMILION, "triangle-up"),
    Verdict.PERHAPS_SLOW: Look("perhaps slow", ORANGE, "diamond"),
    Verdict.ONE_RANK_DELAYS: Look("one rank delays", ORANGE, "square"),
    Verdict.NORMAL: Look("normal", GREEN, "circle"),
    Verdict.INSUFFICIENT_EVIDENCE: Look("no verdict", PEER, "circle-open"),
}
