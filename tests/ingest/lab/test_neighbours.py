from crosswind.ingest.lab.injection import Truth
from crosswind.ingest.lab.neighbours import NodeInterval, neighbour_truths

OWN = [NodeInterval("lab-1", 0, 100, 200), NodeInterval("lab-2", 1, 110, 190)]


def job(node: str, rank: int, started_ns: int, ended_ns: int) -> Truth:
    return Truth("neighbour_job", 1.0, "ranks a node", node, rank, started_ns, ended_ns)


def test_a_neighbour_is_recorded_for_as_long_as_both_were_on_the_node() -> None:
    beside = [NodeInterval("lab-1", 0, 50, 150), NodeInterval("lab-2", 1, 120, 300)]
    assert neighbour_truths(OWN, beside) == [job("lab-1", 0, 100, 150), job("lab-2", 1, 120, 190)]


def test_a_neighbour_on_another_node_or_at_another_time_is_none() -> None:
    assert neighbour_truths(OWN, [NodeInterval("lab-3", 0, 100, 200)]) == []
    assert neighbour_truths(OWN, [NodeInterval("lab-1", 0, 200, 300), NodeInterval("lab-2", 1, 10, 100)]) == []
    assert neighbour_truths(OWN, []) == []


def test_every_rank_of_a_node_has_the_neighbour_there() -> None:
    own = [NodeInterval("lab-1", 0, 100, 200), NodeInterval("lab-1", 3, 100, 220)]
    assert neighbour_truths(own, [NodeInterval("lab-1", 0, 0, 210)]) == [
        job("lab-1", 0, 100, 200),
        job("lab-1", 3, 100, 210),
    ]
