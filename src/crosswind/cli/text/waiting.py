"""Words for whom a run waits for."""

from crosswind.dashboards.wording import seconds
from crosswind.data.schema.answers.stragglers import Episode, RunStragglers


def waiting_words(answer: RunStragglers) -> str:
    """Return whom the run waits for now, or waited for most once it has ended."""
    if not answer.steps:
        return "no steps yet"
    is_running = answer.state == "running"
    among = answer.now if is_running else answer.episodes
    if not among:
        return "waits for no rank" if is_running else "waited for no rank"
    episode = max(among, key=lambda one: one.lag_seconds * (1 if is_running else _length(answer, one)))
    part = "" if episode.rank is None else f" in {episode.phase}"
    when = f"since step {episode.first_step}" if is_running else f"in steps {steps_words(episode)}"
    waits = "waits" if is_running else "waited most"
    return f"{waits} for {who(episode)}{part}, {seconds(episode.lag_seconds)} a step {when}"


def _length(answer: RunStragglers, episode: Episode) -> int:
    last = answer.newest_step if episode.last_step is None else episode.last_step
    return (last or 0) - episode.first_step + 1


def steps_words(episode: Episode) -> str:
    """Return the steps of an episode."""
    return f"{episode.first_step} to {'the end' if episode.last_step is None else episode.last_step}"


def who(episode: Episode) -> str:
    """Return who made the others wait."""
    return "the fabric" if episode.rank is None else f"rank {episode.rank}"
