"""Ranks that meet through PyTorch's store and communicate over gloo, or over NCCL if every rank has its own GPU."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.ingest.preflight.peers import named, timed
from crosswind.ingest.probe.place import Place

POLL_SECONDS = 0.05
GRACE_SECONDS = 5.0  # for rank 0's roster to reach the others
LINGER_SECONDS = 0.5  # for which rank 0's store stays, so that the others can read why there is no check
Words = Mapping[str, Any]
Talked = TypeVar("Talked")


class TorchPeers:
    """The ranks of a process group."""

    def __init__(self, place: Place, environment: Mapping[str, str], seconds: float, *, silence_seconds: float) -> None:
        """Wait `seconds` for all ranks, and later for a message at most `silence_seconds`.

        Raises: UnavailableError naming those that have not come.
        """
        import torch  # noqa: PLC0415 - no heavy import during a job before it is needed
        from torch import distributed  # noqa: PLC0415

        self._torch, self._distributed = torch, distributed
        self.place = place
        self.note = ""
        self._gathered = 0
        self._silence = timedelta(seconds=silence_seconds)
        self._store = self._met(environment, seconds)
        roster = self._roster(torch.cuda.device_count(), seconds)
        self.nodes: Sequence[str] = tuple(roster["nodes"])
        self.method = str(roster["method"])
        self._device = self._own_device()
        self._talk(self._join)

    def go_on(self, *, wanted: bool) -> bool:
        """Return rank 0's decision on all ranks."""
        word = self._torch.tensor([int(wanted)], dtype=self._torch.int32, device=self._device)
        self._talk(lambda: self._distributed.broadcast(word, 0))
        self._talk(lambda: self._distributed.all_reduce(self._torch.zeros(1, device=self._device)))
        return bool(word.item())

    def settle(self, peer: int, number: int) -> int:
        """Return the number of the lower of two ranks, on both."""
        word = self._torch.tensor([number], dtype=self._torch.int64, device=self._device)
        hand_on = self._distributed.send if self.place.rank < peer else self._distributed.recv
        self._talk(lambda: hand_on(word, peer))
        return int(word.item())

    def exchange(self, peer: int, n_bytes: int, count: int) -> list[float]:
        """Return the seconds of each way; the rank of lower number begins."""
        buffer = self._torch.zeros(n_bytes, dtype=self._torch.uint8, device=self._device)
        ways = (self._distributed.send, self._distributed.recv)
        first, second = ways if self.place.rank < peer else reversed(ways)

        def to_and_fro() -> None:
            first(buffer, peer)
            second(buffer, peer)
            self._finish()

        return [seconds / 2 for seconds in self._timed(to_and_fro, count)]

    def all_reduce(self, n_bytes: int, count: int) -> list[float]:
        """Return the seconds of each."""
        buffer = self._torch.zeros(max(1, n_bytes // 4), device=self._device)

        def once() -> None:
            self._distributed.all_reduce(buffer)
            self._finish()

        return self._timed(once, count)

    def gather(self, value: object, seconds: float) -> list[Any] | None:
        """Gather through the store, which works when a rank hangs. Raises: UnavailableError."""
        self._gathered += 1
        key = f"values/{self._gathered}"
        self._talk(lambda: self._store.set(f"{key}/{self.place.rank}", json.dumps(value)))
        if self.place.rank:
            return None
        missing = self._missing(key, seconds)
        if missing:
            raise UnavailableError(f"{named(missing, self.nodes)}: no results within {seconds:.0f} s")
        return [json.loads(self._store.get(f"{key}/{rank}")) for rank in range(self.place.world_size)]

    def close(self) -> None:
        """Leave the group."""
        with suppress(RuntimeError):
            if self._distributed.is_initialized():
                self._distributed.destroy_process_group()

    def _met(self, environment: Mapping[str, str], seconds: float) -> Any:
        host, port = environment["MASTER_ADDR"], environment["MASTER_PORT"]
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise InvalidInputError(f"MASTER_PORT {port[:40]!r}: expected 1 to 65535")
        is_agents = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # torchrun's own process holds it
        try:
            store = self._distributed.TCPStore(
                host,
                int(port),
                world_size=self.place.world_size,
                is_master=self.place.rank == 0 and not is_agents,
                timeout=timedelta(seconds=seconds),
                wait_for_workers=False,
            )
        except RuntimeError as error:
            reason = str(error).splitlines()[0] if self.place.rank == 0 else "rank 0 does not answer there"
            raise UnavailableError(f"MASTER_ADDR {host}, MASTER_PORT {port}: {reason:.200}") from error
        attempt = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
        return self._distributed.PrefixStore(f"crosswind/check/{attempt}", store)

    def _roster(self, gpus: int, seconds: float) -> Words:
        """Return the ranks that came, by rank 0. Raises: UnavailableError naming the missing ones."""
        self._store.set(f"here/{self.place.rank}", json.dumps({"node": self.place.node, "gpus": gpus}))
        if self.place.rank == 0:
            self._store.set("roster", json.dumps(self._called(seconds)))
        try:
            self._store.wait(["roster"], timedelta(seconds=seconds + GRACE_SECONDS))
            roster: Words = json.loads(self._store.get("roster"))
        except RuntimeError as error:
            raise UnavailableError("rank 0: left before all ranks had come") from error
        if roster["missing"]:
            time.sleep(LINGER_SECONDS)
            raise UnavailableError(
                f"{named(roster['missing'])} of {self.place.world_size}: not here after {seconds:.0f} s; "
                "expected every rank of the launcher to run crosswind check"
            )
        return roster

    def _called(self, seconds: float) -> Words:
        missing = self._missing("here", seconds)
        if missing:
            return {"missing": missing}
        come = [json.loads(self._store.get(f"here/{rank}")) for rank in range(self.place.world_size)]
        ranks_on = Counter(peer["node"] for peer in come)
        can_nccl = all(peer["gpus"] >= ranks_on[peer["node"]] for peer in come) and self._has_nccl()
        return {"missing": [], "nodes": [peer["node"] for peer in come], "method": "nccl" if can_nccl else "gloo"}

    def _has_nccl(self) -> bool:
        return bool(self._distributed.is_nccl_available())

    def _missing(self, key: str, seconds: float) -> list[int]:
        missing = list(range(self.place.world_size))
        ends = time.monotonic() + seconds
        while True:
            missing = [rank for rank in missing if not self._store.check([f"{key}/{rank}"])]
            if not missing or time.monotonic() >= ends:
                return missing
            time.sleep(POLL_SECONDS)

    def _own_device(self) -> Any:
        if self.method != "nccl":
            return self._torch.device("cpu")
        earlier = sum(node == self.place.node for node in self.nodes[: self.place.rank])
        device = self._torch.device("cuda", earlier)
        self._torch.cuda.set_device(device)
        return device

    def _join(self) -> None:
        self._distributed.init_process_group(
            self.method,
            store=self._distributed.PrefixStore("group", self._store),
            rank=self.place.rank,
            world_size=self.place.world_size,
            timeout=self._silence,
        )

    def _finish(self) -> None:
        if self.method == "nccl":
            self._torch.cuda.synchronize(self._device)

    def _timed(self, action: Callable[[], None], count: int) -> list[float]:
        return self._talk(lambda: timed(action, count))

    def _talk(self, action: Callable[[], Talked]) -> Talked:
        try:
            return action()
        except RuntimeError as error:
            self.close()  # so that the others stop waiting for this rank, too
            first = str(error).splitlines()[0]
            raise UnavailableError(
                f"rank {self.place.rank} ({self.place.node}): {self.method}: {first:.200}"
            ) from error
