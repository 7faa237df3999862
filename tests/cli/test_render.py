"""Explanations in a terminal."""

from dataclasses import replace

from crosswind.cli.text.explanation import explanation_text
from crosswind.data.schema.answers.explanations import Explanation, Verdict

SLOW = Explanation("r", Verdict.SLOW, "Slow.", "Look there.", 9, 40, cause="link_rate", confidence=1.0)


def test_the_node_to_look_at_is_printed_with_what_is_wrong_there() -> None:
    of_links = explanation_text(replace(SLOW, culprit_node="n7")).splitlines()
    assert "where: node n7, on its links" in of_links
    rank = replace(SLOW, cause="cpu_contention", culprit_node="n7", culprit_rank=3, culprit_ratio=0.914)
    assert "where: node n7, its rank 3 came last in 91% of the steps" in explanation_text(rank).splitlines()
    assert "where:" not in explanation_text(SLOW)
