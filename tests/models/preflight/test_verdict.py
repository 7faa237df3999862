"""Nodes that are blamed, on what evidence, and when none is."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.checks import Measured
from crosswind.models.preflight.references import Basis
from crosswind.models.preflight.verdict import Verdict, judged

CPU = {"device": "cpu", "method": "torch", "hardware": "Fast 9000"}


def gemm(**of_nodes: float) -> list[Measured]:
    return [Measured(node, "gemm", value, **CPU) for node, value in of_nodes.items()]


def earlier(
    node: str, values: Sequence[float], *, measure: str = "gemm", first_check: int = 0, **other: str
) -> EarlierChecks:
    facts = {**CPU, **other}
    times = tuple(range(first_check + len(values), first_check, -1))
    return EarlierChecks(
        measure, facts["method"], facts["hardware"], node, facts["device"], facts.get("peer", ""), times, tuple(values)
    )


def fleet(count: int, **other: str) -> list[EarlierChecks]:
    return [earlier(f"f{number}", [100.0 + number % 3], **other) for number in range(count)]


def verdict(
    measured: Sequence[Measured],
    history: Iterable[EarlierChecks] = (),
    *,
    failures: Iterable[tuple[str, str, str]] = (),
    nodes: Sequence[str] | None = None,
) -> Verdict:
    node_names = dict.fromkeys(
        node for measurement in measured for node in (measurement.node, measurement.peer) if node
    )
    return judged(nodes or tuple(node_names), measured, failures, history)


def test_a_node_far_below_the_fleet_is_left_out_with_what_was_expected_of_it() -> None:
    judgement = verdict(gemm(n1=50.0), fleet(5))
    assert judgement.excluded == ("n1",)
    [blame] = judgement.blames
    assert (blame.measure, blame.device, blame.value, blame.evidence) == ("gemm", "cpu", 50.0, 5)
    assert blame.expected == pytest.approx(101.0)
    assert blame.basis is Basis.FLEET
    assert blame.reason == "50% of what 5 earlier nodes have"


@pytest.mark.parametrize("value", [93.0, 101.0, 300.0])
def test_a_node_a_little_below_or_above_is_not(value: float) -> None:
    judgement = verdict(gemm(n1=value), fleet(5))
    assert (judgement.excluded, judgement.notes) == ((), ())
    assert judgement.findings[0].ratio == pytest.approx(value / 101.0)


def test_four_earlier_nodes_are_too_few_and_it_is_said() -> None:
    judgement = verdict(gemm(n1=1.0), fleet(4))
    assert judgement.excluded == ()
    assert judgement.findings[0].basis is Basis.NOBODY
    assert judgement.findings[0].expected is None
    assert "nothing says what is usual of gemm" in judgement.notes[0]


def test_five_earlier_checks_of_the_node_itself_will_do() -> None:
    other = earlier("n2", [100.0], hardware="Slow 10")
    judgement = verdict(gemm(n1=50.0), [earlier("n1", [100.0, 99.0, 101.0, 100.0, 102.0]), other])
    assert judgement.excluded == ("n1",)
    assert (judgement.blames[0].basis, judgement.blames[0].evidence) == (Basis.CHECKS, 5)


def test_the_only_node_is_blamed_and_not_excluded() -> None:
    judgement = verdict(gemm(n1=50.0), [earlier("n1", [100.0, 99.0, 101.0, 100.0, 102.0])])
    assert [blame.node for blame in judgement.blames] == ["n1"]
    assert judgement.excluded == ()


def test_many_devices_in_one_check_are_one_check() -> None:
    history = [earlier("n1", [100.0], device=f"gpu{number}") for number in range(8)]
    assert verdict(gemm(n1=50.0), history).findings[0].basis is Basis.NOBODY


def test_a_node_that_was_always_slow_is_held_to_the_fleet_and_not_to_itself() -> None:
    history = [*fleet(5), earlier("n1", [50.0] * 10, first_check=100)]
    assert verdict(gemm(n1=50.0), history).excluded == ("n1",)


def test_one_node_checked_often_is_one_node_of_the_fleet() -> None:
    often = earlier("f9", [20.0] * 10)
    assert verdict(gemm(n1=95.0), [*fleet(5), often]).findings[0].expected == pytest.approx(100.5, rel=0.01)


@pytest.mark.parametrize("other", [{"method": "numpy"}, {"hardware": "Slow 1000"}, {"measure": "memory"}])
def test_what_was_measured_otherwise_is_no_evidence(other: Mapping[str, str]) -> None:
    assert verdict(gemm(n1=50.0), fleet(9, **other)).findings[0].basis is Basis.NOBODY


def test_a_disk_is_compared_with_what_is_mounted_at_the_same_place() -> None:
    measured = [Measured("n1", "disk_write", 1e6, "/scratch", method="m")]
    here, elsewhere = (fleet(5, measure="disk_write", device=at, method="m", hardware="") for at in ("/scratch", "/"))
    assert verdict(measured, here).findings[0].basis is Basis.FLEET
    assert verdict(measured, elsewhere).findings[0].basis is Basis.NOBODY


def test_without_history_a_node_far_below_three_others_is_left_out() -> None:
    judgement = verdict(gemm(n1=100.0, n2=101.0, n3=40.0, n4=99.0))
    assert judgement.excluded == ("n3",)
    assert (judgement.blames[0].basis, judgement.blames[0].evidence) == (Basis.PEERS, 3)


def test_two_other_nodes_are_too_few() -> None:
    assert verdict(gemm(n1=100.0, n2=101.0, n3=40.0)).excluded == ()


def test_two_nodes_of_four_cannot_be_told_from_the_other_two() -> None:
    judgement = verdict(gemm(n1=100.0, n2=40.0, n3=40.0, n4=100.0))
    assert judgement.excluded == ()
    assert "gemm: slow on 2 of 4 nodes, so the cause is none of them" in judgement.notes


def test_one_slow_node_of_two_is_told_from_the_other_by_the_fleet() -> None:
    assert verdict(gemm(n1=100.0, n2=40.0), fleet(5)).excluded == ("n2",)


def test_when_most_are_slow_no_node_is_to_blame() -> None:
    judgement = verdict(gemm(n1=50.0, n2=50.0, n3=100.0), fleet(5))
    assert judgement.excluded == ()
    assert "gemm: slow on 2 of 3 nodes, so the cause is none of them" in judgement.notes
    assert sum(finding.is_slow for finding in judgement.findings) == 2


def test_one_gpu_of_many_is_named() -> None:
    values = {f"gpu{number}": 50.0 if number == 6 else 100.0 for number in range(8)}
    measured = [Measured("n1", "gemm", value, gpu, method="torch", hardware="H") for gpu, value in values.items()]
    judgement = verdict(measured, fleet(5, device="gpu0", hardware="H"))
    assert [blame.device for blame in judgement.blames] == ["gpu6"]


def links(bandwidths: Mapping[tuple[str, str], float]) -> list[Measured]:
    return [Measured(a, "bandwidth", value, peer=b, method="gloo") for (a, b), value in bandwidths.items()]


def mesh(count: int, slow: Mapping[tuple[int, int], float]) -> list[Measured]:
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    return links({(f"n{a}", f"n{b}"): slow.get((a, b), 1e9 + 1e6 * (a + b)) for a, b in pairs})


def test_a_node_whose_links_are_all_slow_is_left_out_and_its_partners_are_not() -> None:
    judgement = verdict(mesh(4, {(0, 2): 1e7, (1, 2): 1e7, (2, 3): 1e7}))
    assert judgement.excluded == ("n2",)
    assert judgement.blames[0].reason == "all 3 links of the node are slow, the best has 1% of usual"
    assert not any("link n" in note for note in judgement.notes)


def test_a_slow_link_between_two_that_are_well_linked_blames_neither() -> None:
    judgement = verdict(mesh(4, {(1, 2): 1e7}))
    assert judgement.excluded == ()
    assert any("the link n1 - n2 is slow (1% of usual)" in note for note in judgement.notes)


def link_history(count: int) -> list[EarlierChecks]:
    pairs = [(f"f{number}", f"f{number + 1}") for number in range(count)]
    common = {"measure": "bandwidth", "method": "gloo", "hardware": "", "device": ""}
    return [earlier(a, [1e9], peer=b, **common) for a, b in pairs]


def test_of_two_nodes_with_a_slow_link_neither_is_blamed() -> None:
    judgement = verdict(links({("n1", "n2"): 1e7}), link_history(6))
    assert judgement.excluded == ()
    assert judgement.findings[0].is_slow
    assert any("the link n1 - n2 is slow" in note for note in judgement.notes)


def test_of_three_nodes_the_one_that_both_others_reach_slowly_is_blamed() -> None:
    judgement = verdict(links({("n1", "n2"): 1e7, ("n1", "n3"): 1e9, ("n2", "n3"): 1e7}), link_history(6))
    assert judgement.excluded == ("n2",)


def test_when_all_links_are_slow_nobody_is_blamed() -> None:
    judgement = verdict(links({("n1", "n2"): 1e7, ("n1", "n3"): 1e7, ("n2", "n3"): 1e7}), link_history(6))
    assert judgement.excluded == ()
    assert len(judgement.notes) == 3


def test_what_failed_on_one_node_and_worked_on_three_others_is_blamed() -> None:
    measured = gemm(n1=100.0, n2=100.0, n3=100.0)
    broken = [("n4", "gemm", "CUDA error: no device")]
    judgement = verdict(measured, failures=broken, nodes=("n1", "n2", "n3", "n4"))
    assert judgement.excluded == ("n4",)
    assert "worked on 3 other nodes: CUDA error: no device" in judgement.blames[0].reason
    assert judgement.blames[0].value is None


def test_what_failed_on_two_nodes_is_told_and_not_blamed() -> None:
    broken = [("n3", "gemm", "needs numpy"), ("n4", "gemm", "needs numpy")]
    judgement = verdict(gemm(n1=100.0, n2=100.0), failures=broken, nodes=("n1", "n2", "n3", "n4"))
    assert judgement.excluded == ()
    assert [note for note in judgement.notes if "n3: gemm could not be measured: needs numpy" in note]


def test_a_gpu_that_one_node_alone_does_not_see_is_missed_there() -> None:
    gpu = {"method": "torch", "hardware": "H"}
    seen = [
        ("n1", "gpu0"),
        ("n1", "gpu1"),
        ("n2", "gpu0"),
        ("n2", "gpu1"),
        ("n3", "gpu0"),
        ("n3", "gpu1"),
        ("n4", "gpu0"),
    ]
    judgement = verdict([Measured(node, "gemm", 100.0, device, **gpu) for node, device in seen])
    [blame] = judgement.blames
    assert (blame.node, blame.device, blame.reason) == ("n4", "gpu1", "gpu1 is not seen here, but on all 3 other nodes")
    few = verdict([Measured(node, "gemm", 100.0, device, **gpu) for node, device in seen[2:]])
    assert few.excluded == ()


def test_a_value_that_cannot_be_is_left_out_of_the_comparison() -> None:
    assert verdict(gemm(n1=0.0, n2=1.0)).findings[0].node == "n2"
