"""A program that type checkers know all about: parameters, answers, and what is wrong."""

from typing import assert_type

import crosswind
from crosswind.data.schema.answers.explanations import Explanation
from crosswind.data.schema.answers.runs import ListedRun
from crosswind.data.schema.trial import TrialRecord


def sync() -> None:
    with crosswind.connect("unix:/run/crosswind.sock", token="t") as client:
        assert_type(client.runs(limit=3), tuple[ListedRun, ...])
        assert_type(client.explain("r"), Explanation)
        client.explain(3)  # type: ignore[arg-type]


async def coroutine() -> None:
    async with crosswind.connect_async(connections=4) as client:
        assert_type(await client.runs("w", limit=3), tuple[ListedRun, ...])
        assert_type(await client.explain("r"), Explanation)
        assert_type(await client.studies.trials("s"), list[TrialRecord])
        assert_type(await client.own.delete_run("r"), int)
        assert_type(await client.ask(lambda here: here.compare("a", "b").sentence), str)
        await client.explain(3)  # type: ignore[arg-type]
        await client.runs(limit="3")  # type: ignore[arg-type]
        await client.nosuch()  # type: ignore[attr-defined]
        await client.predict(crosswind.LikeRun("r", nosuch=1))  # type: ignore[call-arg]
