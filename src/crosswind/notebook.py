"""Answers in notebooks: as the command line prints them, and explanations with their bars."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from crosswind.cli.text.explanation import explanation_text, verdict_line
from crosswind.cli.text.prediction import answer_text, walltime_text
from crosswind.dashboards.wording import estimate, seconds
from crosswind.data.schema.answers.advice import WalltimeAdvice
from crosswind.data.schema.answers.explanations import Explanation
from crosswind.data.schema.answers.predictions import RunPrediction
from crosswind.data.schema.words import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell

BAR_PIXELS = 300
TEXTS: dict[type, Callable[[Any], str]] = {
    Explanation: explanation_text,
    RunPrediction: answer_text,
    WalltimeAdvice: walltime_text,
}


def show_answers(shell: InteractiveShell) -> None:
    """Have a shell show these answers so."""
    plain, html = (shell.display_formatter.formatters[kind] for kind in ("text/plain", "text/html"))
    for kind, text in TEXTS.items():
        plain.for_type(kind, lambda answer, printer, _, text=text: printer.text(text(answer)))
    html.for_type(Explanation, explanation_html)


def explanation_html(answer: Explanation) -> str | None:
    """Return the verdict and a table of causes with their seconds as bars; None without numbers."""
    if not (answer.measured_seconds and answer.expected_seconds and answer.unexplained):
        return None
    shares = [(share.cause, share.seconds) for share in answer.shares] + [("unexplained", answer.unexplained)]
    rows = [
        _row("expected", seconds(answer.expected_seconds), answer.expected_seconds / answer.measured_seconds),
        *(
            _row(words(cause), estimate(part.value, part.low, part.high), part.value / answer.measured_seconds)
            for cause, part in shares
        ),
        _row("measured", seconds(answer.measured_seconds), 1.0),
    ]
    return (
        f"<p><b>{escape(verdict_line(answer))}</b></p><table>{''.join(rows)}</table><p>{escape(answer.next_action)}</p>"
    )


def _row(name: str, amount: str, share: float) -> str:
    width = round(BAR_PIXELS * min(max(share, 0.0), 1.0))
    bar = f'<div style="background:#0072b2;height:0.8em;width:{width}px"></div>'
    return f'<tr><td>{escape(name)}</td><td>{escape(amount)}</td><td style="text-align:left">{bar}</td></tr>'
