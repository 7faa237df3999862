"""The client for coroutines, of asyncio and of trio."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
from tests.cli.conftest import run_of
from tests.client.faulty import Does, answer, faulty
from tests.serving import answering

import crosswind
from crosswind.client.asynchronous import AsyncClient, AsyncCohorts, AsyncFleet, Asynchronous, AsyncRows, AsyncStudies
from crosswind.client.cohorts import Cohorts
from crosswind.client.fleet import Fleet
from crosswind.client.own_rows import OwnRows
from crosswind.client.protocol import Client
from crosswind.data.schema.errors import NotFoundError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.models.tuner.service.service import StudyService

NEVER = Does(b"H", seconds_a_byte=60)
Run = Callable[[Callable[[], Awaitable[None]]], None]


def of_asyncio(main: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await main()

    asyncio.run(whole())


RUNNERS = pytest.mark.parametrize("run", [of_asyncio, trio.run])


@RUNNERS
def test_a_server_answers_coroutines(tmp_path: Path, run: Run) -> None:
    with Store.open(tmp_path) as store, store.catalog.write() as session:
        session.runs.merge(run_of("toy", 1, {}))

    async def main() -> None:
        async with crosswind.connect_async(url) as client:
            assert [one.run_id for one in await client.runs("toy")] == ["toy-01"]
            assert (await client.run_report("toy-01")).run.workload == "toy"
            assert await client.studies.studies() == []
            assert (await client.own.audit())[:0] == ()
            assert await client.ask(lambda here: len(here.runs())) == 1
            with pytest.raises(NotFoundError, match="nosuch"):
                await client.explain("nosuch")

    with answering(tmp_path) as url:
        run(main)


def test_a_store_of_this_machine_does_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CROSSWIND_SERVER", raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))

    async def main() -> None:
        async with crosswind.connect_async() as client:
            assert await client.runs() == ()

    asyncio.run(main())


@RUNNERS
def test_a_cancelled_question_ends_its_request_at_once(run: Run) -> None:
    """A connection that ends makes room for the next question; the only thread is free again."""

    async def main() -> None:
        with faulty(NEVER, answer(200)) as server:
            async with crosswind.connect_async(server.url, connections=1) as client:
                began = time.monotonic()
                if run is of_asyncio:
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.3):
                            await client.runs()
                else:
                    with trio.move_on_after(0.3):
                        await client.runs()
                assert await client.runs() == ()
                assert time.monotonic() - began < 5
            assert len(server.requests) == 2

    run(main)


def test_a_wait_between_tries_ends_with_the_question() -> None:
    async def main() -> None:
        with faulty(answer(503, Retry_After="20")) as server:
            async with crosswind.connect_async(server.url, connections=1) as client:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await client.runs()
                began = time.monotonic()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await client.runs()
                assert len(server.requests) == 2
                assert time.monotonic() - began < 1

    asyncio.run(main())


def test_so_many_questions_are_asked_at_once_over_connections_that_are_kept() -> None:
    slowly = Does(answer(200).sends, seconds_a_byte=0.001)

    async def main() -> None:
        with faulty(slowly) as server:
            async with crosswind.connect_async(server.url, connections=4) as client:
                answers = await asyncio.gather(*(client.runs() for _ in range(12)))
            assert answers == [()] * 12
            assert server.connections == 4

    asyncio.run(main())


def test_a_deadline_holds_for_coroutines_too() -> None:
    async def main() -> None:
        with faulty(NEVER) as server:
            async with crosswind.connect_async(server.url, deadline_seconds=0.3) as client:
                with pytest.raises(UnavailableError, match=r"\(1 try in 0\.\d s\)"):
                    await client.runs()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        (AsyncClient, Client),
        (AsyncStudies, StudyService),
        (AsyncRows, OwnRows),
        (AsyncFleet, Fleet),
        (AsyncCohorts, Cohorts),
    ],
)
def test_every_method_has_an_awaited_one_of_the_same_parameters(
    kind: type[Asynchronous[object]], protocol: type
) -> None:
    names = {name for name in vars(protocol) if not name.startswith("_")} - {"tables"}  # for which `ask` is there
    assert names <= {name for base in kind.__mro__ for name in vars(base)}
    for name in names - {"close"}:
        method = getattr(kind, name)
        if callable(method):
            assert inspect.signature(method) == inspect.signature(getattr(protocol, name))
            assert inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
            assert method.__doc__ == getattr(protocol, name).__doc__


@RUNNERS
def test_events_are_awaited_one_by_one_and_leaving_ends_their_request(tmp_path: Path, run: Run) -> None:
    async def listen(client: AsyncClient) -> None:
        async for _ in client.events():
            raise AssertionError("nothing happens there")

    async def main() -> None:
        async with crosswind.connect_async(url, connections=1) as client:
            for _ in range(2):
                if run is of_asyncio:
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(listen(client), 0.5)
                else:
                    with trio.move_on_after(0.5):
                        await listen(client)
            assert await client.runs() == ()
            assert [one async for one in client.events(follow=False)] == []

    with answering(tmp_path) as url:
        run(main)


def test_a_client_is_opened_once_whoever_asks_first() -> None:
    opened: list[int] = []

    async def main() -> None:
        with faulty(answer(200)) as server:

            def connect() -> Client:
                opened.append(1)
                time.sleep(0.05)
                return crosswind.connect(server.url)

            async with AsyncClient(connect, 4) as client:
                await asyncio.gather(*(client.runs() for _ in range(4)))

    asyncio.run(main())
    assert opened == [1]
