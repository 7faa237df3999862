"""Short names of process groups, the same on all their ranks, different for different groups."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary
from zlib import crc32

MOST_LISTED: Final = 8  # ranks
ANYBODY: Final = -1
WORLD: Final = "world"


class Groups:
    """The names of the process groups seen so far, with their purpose and ranks: `tp 0-3`, `world`."""

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._transfers: WeakKeyDictionary[Any, dict[tuple[int, int], str]] = WeakKeyDictionary()
        self._by_key: dict[str, str] = {}
        self._called: WeakKeyDictionary[Any, tuple[str, Mapping[int, str]]] = WeakKeyDictionary()

    def call_transfers(self, group: Any, purpose: str, members: Mapping[int, str]) -> None:
        """Name the purpose of a group's transfers, and its members by their rank in it."""
        self._called[group] = purpose, members
        self._transfers.pop(group, None)

    def name(self, group: Any) -> str:
        """Return the name of a group."""
        name = self._names.get(group)
        if name is None:
            name = self._names[group] = _name_of(group)
        return name

    def name_by_key(self, key: Any) -> str:
        """Return the name of the group with this key of PyTorch's: functional collectives have no more."""
        if not isinstance(key, str):
            return self.name(key)
        name = self._by_key.get(key)
        if name is None:
            from torch.distributed import distributed_c10d  # noqa: PLC0415 - torch is the user's

            name = self._by_key[key] = self.name(distributed_c10d._resolve_process_group(key))
        return name

    def transfer(self, group: Any, source: int, target: int) -> str:
        """Return the name of a transfer between members, by their ranks in the group; ANYBODY may be the source.

        It ends with both ranks in the run, `pipeline stage0>stage1 4>6`: the second receives.
        """
        names = self._transfers.setdefault(group, {})
        name = names.get((source, target))
        if name is None:
            name = names[source, target] = " ".join(self._transfer_parts(group, source, target))
        return name

    def _transfer_parts(self, group: Any, source: int, target: int) -> Iterator[str]:
        ranks, (purpose, members) = _ranks(group), self._called.get(group) or (_purpose(group), {})
        yield purpose
        if members:
            yield f"{members.get(source, '*')}>{members[target]}"
        if ranks:
            yield f"{'*' if source == ANYBODY else ranks[source]}>{ranks[target]}"
        else:
            yield f"{source}>{target} of {group.size()}"


def _name_of(group: Any) -> str:
    purpose = _purpose(group)
    if purpose == WORLD:
        return WORLD
    ranks = _ranks(group)
    return f"{purpose} {listed(ranks)}" if ranks else f"{purpose} of {group.size()}"


def _purpose(group: Any) -> str:
    """Return PyTorch's description: a device mesh's groups are `mesh_<dimension>`, and the first is `default_pg`."""
    described = str(group.group_desc)
    if described == "default_pg":
        return WORLD
    if described in {"", "undefined", "mesh_default"}:
        return "ranks"
    return described.removeprefix("mesh_")


def _ranks(group: Any) -> list[int]:
    """Return its ranks in the run; none when it was not made by torch.distributed's own functions."""
    from torch import distributed  # noqa: PLC0415 - torch is the user's

    try:
        return list(distributed.get_process_group_ranks(group))
    except KeyError:
        return []


def listed(ranks: Sequence[int]) -> str:
    """Return a short list of ranks: `0-3`, every second one `0-6/2`, `0,1,5`; many without order with a checksum."""
    ordered = sorted(ranks)
    pace = ordered[1] - ordered[0] if len(ordered) > 1 else 1
    if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1, pace)):
        return f"{ordered[0]}-{ordered[-1]}" + (f"/{pace}" if pace > 1 else "")
    text = ",".join(map(str, ordered))
    if len(ordered) <= MOST_LISTED:
        return text
    return f"{ordered[0]}-{ordered[-1]} ({len(ordered)} ranks, {crc32(text.encode()):08x})"
