"""Sureness about which configuration of a study is best."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from crosswind.cli.verbs.tune.filling import text_of
from crosswind.data.schema.trial import Study, TrialRecord

if TYPE_CHECKING:
    from crosswind.models.tuner.search.incumbents import Answer

FEWEST = 5  # finished trials, of which fewer say little about noise


def answer_of(study: Study, records: Sequence[TrialRecord]) -> "Answer | None":
    """Return what the trials within the limits say is best, as the study's readers see numbers.

    None of too few, of several objectives, or without models.
    """
    try:
        from crosswind.models.tuner.search.incumbents import Beliefs  # noqa: PLC0415 - models are heavy to import
        from crosswind.models.tuner.search.repeats import Repeats  # noqa: PLC0415
        from crosswind.models.tuner.space.space import Space  # noqa: PLC0415
        from crosswind.models.tuner.study.aim import Aim  # noqa: PLC0415 - models are heavy to import
    except ImportError:  # a node that only asks a server
        return None
    if study.define_by_run:  # a parameter may be missing in some trials
        return None
    aim = Aim.of(study)
    judged = [
        (record.trial, judgement) for record in records if (judgement := aim.judge(record)) and judgement.keeps_limits
    ]
    done = [(trial.configuration, trial.objective) for trial, _ in judged if trial.objective is not None]
    if len(done) < FEWEST or len(judged[0][1].objectives) > 1:
        return None
    measured = Repeats.of(
        Space.from_json(study.space), [configuration for configuration, _ in done], [value for _, value in done]
    )
    answer = Beliefs.of(measured, study.seed).answer()
    low, high = sorted((study.signed(answer.low), study.signed(answer.high)))
    return replace(answer, objective=study.signed(answer.objective), low=low, high=high)


def answer_words(study: Study, best: TrialRecord, answer: "Answer | None") -> str:
    """The answer in a sentence or two; of a study with too few trials, that."""
    if answer is None:
        return f"how sure that is can be estimated from {FEWEST} finished trials on"
    unit = f" {study.unit}" if study.unit else ""
    interval = f"{answer.objective:.4g}{unit} [{answer.low:.4g} to {answer.high:.4g}] without noise"
    if answer.configuration == best.trial.configuration:
        return f"it has {interval}, and is the best of those measured with probability {answer.chance_best:.0%}"
    words = " ".join(f"{name}={text_of(value)}" for name, value in answer.configuration.items())
    return f"but {words} has {interval}, and is the best of those measured with probability {answer.chance_best:.0%}"


def answer_json(answer: "Answer | None") -> dict[str, object] | None:
    """The same for programs."""
    return None if answer is None else asdict(answer)
