"""The node to look at; on measured runs test_lab_samples looks."""

from crosswind.data.schema.answers.explanations import Explanation, Verdict
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.cohort.columns import LINK_EVIDENCE, SAMPLED
from crosswind.models.explain.culprit_node import EXCLUDE, NOTHING_ELSE, at_node, node_of_links, with_node


def test_a_directive_names_the_node_that_it_leaves_out() -> None:
    asking = [cause for cause in CAUSES if EXCLUDE in cause.next_action]
    assert {cause.name for cause in asking} >= {"slow_node", "heat_throttling", "cpu_steal"}
    explanation = Explanation("r", Verdict.SLOW, "", asking[0].next_action, 9, 40, cause=asking[0].name)
    assert at_node(explanation, None) == explanation
    named = at_node(explanation, "n7")
    assert named.culprit_node == "n7"
    assert "--exclude=n7" in named.next_action
    assert EXCLUDE not in named.next_action


def test_evidence_that_locates_causes_of_links() -> None:
    located = {name: [one.column for one in evidence if one.locates] for name, evidence in LINK_EVIDENCE.items()}
    assert located == {
        "link_rate": ["overlimits"],
        "packet_loss": ["out_of_order", "retransmits"],
        "retransmission": ["retransmits", "retries"],
        "congestion": ["pauses", "port_waits", "marks", "backlog"],
        "neighbour_traffic": ["link_busy"],
    }
    assert {one for evidence in LINK_EVIDENCE.values() for one in evidence} <= set(SAMPLED)


def test_without_samples_or_another_node_no_node_is_named(store: Store) -> None:
    for nodes in ((), ("n1",), ("n1", "n2")):
        run = Run("r", "w", "s", RunState.COMPLETED, nodes=nodes)
        assert node_of_links(store, run, "link_rate") is None
        assert node_of_links(store, run, "cpu_contention") is None


def test_nobody_is_advised_to_leave_out_the_only_node(store: Store) -> None:
    for cause in (cause for cause in CAUSES if EXCLUDE in cause.next_action):
        explanation = Explanation("r", Verdict.SLOW, "", cause.next_action, 9, 40, cause=cause.name, culprit_rank=0)
        run = Run("r", "w", cause.name, RunState.COMPLETED, nodes=("n1",), started_ns=1)
        with store.catalog.write() as session:
            session.runs.merge(run)
            session.ranks.merge(Rank("r", 0, "n1", 1, 1))
        alone = with_node(store, run, explanation)
        assert alone.culprit_node == "n1"
        assert "--exclude" not in alone.next_action
        assert alone.next_action
        with store.catalog.write() as session:
            session.runs.merge(Run(f"{cause.name}-2", "w", cause.name, RunState.COMPLETED, nodes=("n2",), started_ns=2))
        assert "--exclude=n1" in with_node(store, run, explanation).next_action


def test_advice_that_is_nothing_else_is_replaced(store: Store) -> None:
    run = Run("r", "w", "s", RunState.COMPLETED, nodes=("n1",))
    only = Explanation("r", Verdict.SLOW, "", f"Leave it out: {EXCLUDE}.", 9, 40)
    assert with_node(store, run, only).next_action == NOTHING_ELSE
