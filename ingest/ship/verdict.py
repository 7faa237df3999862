"""The meaning of a server's answer for the segment that was sent."""

from enum import Enum

from crosswind.ingest.ship.client import Answer

PROBLEM = "application/problem+json"


class Verdict(Enum):
    """The action to take with the segment."""

    TAKEN = "delete it"
    REFUSED = "keep it as .rejected: the server will never take it"
    TOO_LARGE = "pass it over for now"
    OTHER_CODING = "pack it otherwise"
    LATER = "send it again"
    SLOWLY = "send it again, but a person must change something first"


BY_STATUS = {
    **dict.fromkeys((408, 425, 429), Verdict.LATER),
    413: Verdict.TOO_LARGE,
    **dict.fromkeys((401, 403, 404, 405, 407), Verdict.SLOWLY),  # the token, the address or the proxy, not the segment
}


def verdict_on(answer: Answer, batch_id: str) -> Verdict:
    """Return the verdict: only a server that names the batch took it, and only one that names the problem refused it.

    A login page of some proxy answers 200 as well, and a mistyped address 404.
    """
    if answer.status in (200, 201):
        return Verdict.TAKEN if answer.said.get("batch_id") == batch_id else Verdict.SLOWLY
    if answer.status == 415 and answer.codings:
        return Verdict.OTHER_CODING
    if answer.status in BY_STATUS or answer.status >= 500:
        return BY_STATUS.get(answer.status, Verdict.LATER)
    is_refused = answer.status >= 400 and answer.media_type == PROBLEM
    return Verdict.REFUSED if is_refused else Verdict.SLOWLY


def reason_of(answer: Answer) -> str:
    """Return the answer in a few words."""
    explanation = answer.said.get("detail") or answer.said.get("title")
    return f"HTTP {answer.status}" + (f": {explanation!s:.300}" if explanation else " without an explanation")
