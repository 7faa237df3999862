"""Variants of which one is good on small inputs, another on large ones, and a third fails on odd ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.variants.chooser import VariantChooser
from crosswind.models.tuner.variants.experience import Choice, Context, Experience

DIRECT, MULTIGRID, RISKY = ({"solver": name} for name in ("direct", "multigrid", "risky"))
VARIANTS = [DIRECT, MULTIGRID, RISKY]


def context(size: int, odd: float) -> Context:
    return Context(f"{size} {odd}", {"size": float(size), "odd": odd})


def showed(size: int, odd: float) -> list[Experience]:
    """Direct is best below 10, multigrid from there on; the risky one is best of all, but fails on odd inputs."""
    here = context(size, odd)
    direct, multigrid = (1.0, 3.0) if size < 10 else (9.0, 2.0)
    risky = None if odd else 0.5
    return [Experience(here, DIRECT, direct), Experience(here, MULTIGRID, multigrid), Experience(here, RISKY, risky)]


def experiences() -> list[Experience]:
    return [experience for size in range(20) for odd in (0.0, 1.0) for experience in showed(size, odd)]


def learned(seed: int = 0) -> VariantChooser:
    return VariantChooser(VARIANTS, seed).learn(experiences())


@pytest.mark.parametrize(("size", "odd", "expected"), [(3, 1.0, DIRECT), (16, 1.0, MULTIGRID), (3, 0.0, RISKY)])
def test_the_features_decide(size: int, odd: float, expected: dict[str, str]) -> None:
    unseen = Context("unseen", {"size": size + 0.4, "odd": odd})
    chooser = learned()
    assert chooser.suggest(unseen) == [expected]
    assert chooser.best(unseen).variant == expected


def test_what_is_expected_is_what_like_contexts_showed() -> None:
    ranking = learned().rank(Context("unseen", {"size": 3.4, "odd": 1.0}))
    assert [choice.variant for choice in ranking] == [DIRECT, MULTIGRID, RISKY]
    assert ranking[0] == Choice(DIRECT, pytest.approx(0.0, abs=0.2), pytest.approx(0.0, abs=0.1))
    assert ranking[1].expected_regret == pytest.approx(2.0, abs=0.5)
    assert ranking[2].failure_ratio == pytest.approx(1.0, abs=0.1)


def test_trials_outweigh_features() -> None:
    chooser, misleading = learned(), Context("unseen", {"size": 3.4, "odd": 1.0})
    chooser.observe([Experience(misleading, DIRECT, 9.0), Experience(misleading, MULTIGRID, 2.0)])
    best = chooser.best(misleading)
    assert (best.variant, best.is_measured) == (MULTIGRID, True)


def test_trials_say_which_precedents_count() -> None:
    """Without features: four inputs like A and four like B; two trials show which of them the new one is like."""
    variants = [{"level": level} for level in range(4)]
    like = {"A": (1.0, 2.0, 4.0, 8.0), "B": (2.0, 1.0, 8.0, 0.5)}
    precedents = [
        Experience(Context(f"{kind}{number}"), variant, seconds)
        for kind, all_seconds in like.items()
        for number in range(4)
        for variant, seconds in zip(variants, all_seconds, strict=True)
    ]
    chooser, unseen = VariantChooser(variants).learn(precedents), Context("unseen")
    chooser.observe([Experience(unseen, variants[0], 20.0), Experience(unseen, variants[1], 10.0)])
    assert chooser.suggest(unseen) == [variants[3]]
    assert chooser.rank(unseen)[0].variant == variants[3]


def test_a_failed_trial_is_never_what_to_use() -> None:
    chooser, unseen = learned(), Context("unseen", {"size": 3.4, "odd": 0.0})
    chooser.observe([Experience(unseen, RISKY, None)])
    assert chooser.best(unseen).variant == DIRECT
    last = chooser.rank(unseen)[-1]
    assert (last.variant, last.failure_ratio, last.is_measured) == (RISKY, 1.0, True)


def test_nothing_tried_or_pending_is_suggested_again() -> None:
    chooser, unseen = learned(), context(30, 1.0)
    assert len(chooser.suggest(unseen, 5)) == 3
    chooser.observe([Experience(unseen, MULTIGRID, 2.0)])
    assert chooser.suggest(unseen, 5, pending=[DIRECT]) == [RISKY]
    chooser.observe([Experience(unseen, DIRECT, 1.0), Experience(unseen, RISKY, None)])
    assert chooser.suggest(unseen) == []


def test_a_second_suggestion_does_not_repeat_the_virtue_of_the_first() -> None:
    """Variants 0 and 1 are twins, good where 2 is bad: with 0 pending, 2 may save something, 1 cannot."""
    variants = [{"number": number} for number in range(3)]
    rows = [(1.0, 1.01, 5.0)] * 3 + [(5.0, 5.05, 1.0)] * 2
    precedents = [
        Experience(Context(str(row)), variant, seconds)
        for row, all_seconds in enumerate(rows)
        for variant, seconds in zip(variants, all_seconds, strict=True)
    ]
    assert VariantChooser(variants).learn(precedents).suggest(Context("unseen"), 2) == [variants[0], variants[2]]


def test_without_anything_known_it_still_suggests_each_variant_once() -> None:
    chooser = VariantChooser(VARIANTS)
    assert sorted(variant["solver"] for variant in chooser.suggest(Context("first"), 3)) == [
        "direct",
        "multigrid",
        "risky",
    ]
    assert chooser.best(Context("first")).variant in VARIANTS


def test_missing_and_unknown_features_do_no_harm() -> None:
    chooser = learned()
    assert chooser.suggest(Context("bare")) in [[variant] for variant in VARIANTS]
    assert chooser.suggest(Context("more", {"size": 3.4, "odd": 1.0, "colour": "red"})) == [DIRECT]


def test_a_text_may_be_a_feature() -> None:
    precedents = [
        Experience(Context(f"{codec} {number}", {"codec": codec}), variant, seconds)
        for number in range(6)
        for codec, good in (("wav", DIRECT), ("tar", MULTIGRID))
        for variant in (DIRECT, MULTIGRID)
        for seconds in [1.0 if variant is good else 2.0]
    ]
    chooser = VariantChooser([DIRECT, MULTIGRID]).learn(precedents)
    assert chooser.suggest(Context("new", {"codec": "tar"})) == [MULTIGRID]
    assert chooser.suggest(Context("other", {"codec": "wav"})) == [DIRECT]


def test_variants_not_measured_everywhere_are_taken_at_their_mean() -> None:
    precedents = [
        experience
        for experience in experiences()
        if experience.variant is not MULTIGRID or experience.context.name != "3 1.0"
    ]
    chooser = VariantChooser(VARIANTS).learn(precedents)
    assert chooser.suggest(Context("unseen", {"size": 3.4, "odd": 1.0})) == [DIRECT]


def test_of_repeats_the_least_counts_and_success_outweighs_failure() -> None:
    chooser, unseen = learned(), context(30, 1.0)
    for seconds in (None, 4.0, 3.0, None):
        chooser.observe([Experience(unseen, DIRECT, seconds)])
    chooser.observe([Experience(unseen, MULTIGRID, 3.5)])
    assert chooser.best(unseen).variant == DIRECT


def test_what_theory_rules_out_is_never_suggested_and_ranks_last() -> None:
    """Risky is best where nothing is odd, but is said not to apply to small inputs."""
    precedents = [
        experience
        for experience in experiences()
        if experience.variant is not RISKY or experience.context.features["size"] >= 10
    ]
    chooser = VariantChooser(VARIANTS, applies=lambda variant, at: variant is not RISKY or at.features["size"] >= 10)
    small, large = Context("small", {"size": 3.4, "odd": 0.0}), Context("large", {"size": 16.4, "odd": 0.0})
    chooser.learn(precedents)
    assert chooser.suggest(large) == [RISKY]
    assert chooser.suggest(small, 3) == [DIRECT, MULTIGRID]
    assert chooser.rank(small)[-1] == Choice(RISKY, pytest.approx(10.0), pytest.approx(1.0))


def test_each_variant_is_foreseen_by_its_own_features_in_a_context_unlike_any() -> None:
    """Two costs, one feature each: high values of both together were never met, yet the third is known to be steady."""
    variants = [{"solver": name} for name in ("by_length", "by_width", "steady")]
    shapes = [(low, high) for high in range(8) for low in (0, 1)]
    shapes += [(high, low) for low, high in shapes]
    precedents = [
        Experience(Context(f"{a} {b}", {"length": float(a), "width": float(b)}), variant, seconds)
        for a, b in shapes
        for variant, seconds in zip(variants, (1.0 + a, 1.0 + b, 3.0), strict=True)
    ]
    chooser = VariantChooser(variants).learn(precedents)
    assert chooser.best(Context("both", {"length": 7.0, "width": 7.0})).variant == variants[2]


@pytest.mark.thorough
@settings(max_examples=20, deadline=None)
@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 3))
def test_only_ratios_within_a_context_count(scale: float, seed: int) -> None:
    scaled = [
        Experience(
            experience.context,
            experience.variant,
            None if experience.objective is None else scale * experience.objective,
        )
        for experience in experiences()
        if experience.context.name.endswith("1.0")
    ]
    chooser = VariantChooser(VARIANTS, seed).learn(scaled)
    assert chooser.suggest(Context("unseen", {"size": 16.4, "odd": 1.0}), 2)[0] == MULTIGRID


def test_the_same_seed_chooses_the_same() -> None:
    unseen = Context("unseen", {"size": 9.5, "odd": 1.0})
    assert learned(seed=5).rank(unseen) == learned(seed=5).rank(unseen)


@pytest.mark.parametrize("objective", [0.0, -1.0, float("nan"), float("inf")])
def test_an_objective_that_is_no_time_is_refused(objective: float) -> None:
    with pytest.raises(InvalidInputError, match=r"context 3 1.0: objective is .*, expected a positive finite number"):
        Experience(context(3, 1.0), DIRECT, objective)


def test_bad_questions_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="feature size is nan, expected a finite number or a text"):
        Context("unseen", {"size": float("nan")})
    with pytest.raises(InvalidInputError, match="'solver': 'unheard'} is none of the 3 known"):
        learned().observe([Experience(context(3, 1.0), {"solver": "unheard"}, 1.0)])
    with pytest.raises(InvalidInputError, match="2 variants, expected at least one and each of them once"):
        VariantChooser([DIRECT, dict(DIRECT)])
    with pytest.raises(InvalidInputError, match="count is 0, expected at least 1"):
        learned().suggest(context(3, 1.0), 0)
