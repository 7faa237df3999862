import asyncio
from collections.abc import Sequence

import pytest

from crosswind.api.gathering import GROUPS, MANY, Gathering


def test_what_comes_during_work_becomes_one_group() -> None:
    groups: list[Sequence[int]] = []

    async def work(items: Sequence[int]) -> Sequence[int]:
        groups.append(items)
        await asyncio.sleep(0.01)
        return [item * 2 for item in items]

    async def ask() -> list[int]:
        gathering = Gathering(work, at_most=4)
        first = [asyncio.create_task(gathering.result(number)) for number in range(GROUPS)]
        await asyncio.sleep(0.005)
        rest = [gathering.result(number) for number in range(GROUPS, 12)]
        return list(await asyncio.gather(*first, *rest))

    assert asyncio.run(ask()) == [number * 2 for number in range(12)]
    assert max(map(len, groups)) == 4
    assert sorted(item for group in groups for item in group) == list(range(12))


def test_a_second_group_begins_beside_another_only_where_many_wait() -> None:
    sizes: list[int] = []

    async def ask() -> list[int]:
        go_on = asyncio.Event()

        async def work(items: Sequence[int]) -> Sequence[int]:
            sizes.append(len(items))
            await go_on.wait()
            return items

        gathering = Gathering(work, at_most=100)
        tasks = []
        for number in range(MANY + 3):
            tasks.append(asyncio.create_task(gathering.result(number)))
            await asyncio.sleep(0.001)
            assert len(sizes) == (1 if number < MANY else 2)
        go_on.set()
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(ask()) == list(range(MANY + 3))
    assert sizes == [1, MANY, 2]


def test_an_error_reaches_all_of_a_group_and_nobody_else() -> None:
    async def work(items: Sequence[int]) -> Sequence[int]:
        await asyncio.sleep(0)
        if 1 in items:
            raise ValueError("one is odd")
        return items

    async def ask() -> list[int | BaseException]:
        gathering = Gathering(work, at_most=2)
        return list(await asyncio.gather(*map(gathering.result, range(4)), return_exceptions=True))

    first, second, *others = asyncio.run(ask())
    assert (type(first), type(second), others) == (ValueError, ValueError, [2, 3])


def test_work_that_returns_too_little_is_an_error_and_others_are_worked_on() -> None:
    async def work(items: Sequence[int]) -> Sequence[int]:
        await asyncio.sleep(0)
        return [] if 1 in items else items

    async def ask() -> list[int | BaseException]:
        gathering = Gathering(work, at_most=1)
        asked = asyncio.gather(*map(gathering.result, [1] * GROUPS + [2]), return_exceptions=True)
        return list(await asyncio.wait_for(asked, timeout=10))

    *errors, last = asyncio.run(ask())
    assert ({type(error) for error in errors}, last) == ({ValueError}, 2)


def test_whoever_gives_up_is_not_worked_for() -> None:
    worked: list[int] = []

    async def work(items: Sequence[int]) -> Sequence[int]:
        worked.extend(items)
        await asyncio.sleep(0.01)
        return items

    async def ask() -> None:
        gathering = Gathering(work, at_most=1)
        tasks = [asyncio.create_task(gathering.result(number)) for number in range(5)]
        await asyncio.sleep(0.005)
        tasks[4].cancel()
        assert await asyncio.gather(*tasks[:4]) == [0, 1, 2, 3]
        with pytest.raises(asyncio.CancelledError):
            await tasks[4]

    asyncio.run(ask())
    assert worked == [0, 1, 2, 3]


def test_a_group_holds_no_more_bytes_than_it_may_unless_one_item_does() -> None:
    groups: list[Sequence[int]] = []

    async def work(items: Sequence[int]) -> Sequence[int]:
        groups.append(items)
        await asyncio.sleep(0.01)
        return items

    async def ask() -> None:
        gathering = Gathering(work, at_most=9, size=lambda item: item, size_at_most=10)
        await asyncio.gather(*map(gathering.result, [4, 4, 4, 20, 3, 3]))

    asyncio.run(ask())
    assert groups == [[4, 4], [4], [20], [3, 3]]


def test_an_item_that_comes_as_all_work_ends_does_not_wait_for_the_next() -> None:
    finished = asyncio.Event()

    async def work(items: Sequence[int]) -> Sequence[int]:
        await finished.wait()
        return items

    async def ask_twice(gathering: Gathering[int, int]) -> int:
        await gathering.result(0)
        return await gathering.result(100)

    async def ask() -> int:
        gathering = Gathering(work, at_most=1)
        last = asyncio.create_task(ask_twice(gathering))
        others = [asyncio.create_task(gathering.result(number)) for number in range(1, GROUPS)]
        asyncio.get_running_loop().call_later(0.01, finished.set)
        await asyncio.gather(*others)
        return await asyncio.wait_for(last, timeout=10)

    assert asyncio.run(ask()) == 100
