"""Encoding of sweeps: the text of a row that did not change since the sweep before is used again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.metric import MetricSet, Scalar
from crosswind.ingest.spool.segment import SweepRows, check_rows, encoded_samples, encoded_value

Row = Sequence[Scalar]


@dataclass(frozen=True, slots=True)
class _Held:
    """A row of the sweep before, with its text once it was the same in two; a living row keeps its identity."""

    row: Row
    text: str | None = None


@dataclass(frozen=True)
class SweepEncoder:
    """Encodes sweeps one after another.

    A tuple that is the same object as in the sweep before was checked then, and keeps its text: collectors return the
    same object for what the kernel shows unchanged.
    """

    _held: dict[str, tuple[MetricSet, dict[int, _Held]]] = field(default_factory=dict, init=False)

    def frame(self, sweep_rows: SweepRows) -> bytes:
        """The frame of one set in one sweep.

        Raises: MalformedError naming set, column and value for values that the set does not take.
        """
        metric_set, before = self._held.get(sweep_rows.metric_set.name, (None, {}))
        if metric_set is not sweep_rows.metric_set:
            before = {}
        texts: list[str] = []
        fresh: list[Row] = []
        now: dict[int, _Held] = {}
        for row in sweep_rows.rows:
            held = before.get(id(row))
            if held is None:
                fresh.append(row)
                held = _Held(row)
            else:
                held = held if held.text else _Held(row, encoded_value(row))
                texts.append(held.text or "")
            if type(row) is tuple:  # anything else may be changed under our hands
                now[id(row)] = held
        check_rows(sweep_rows, fresh)
        frame = encoded_samples(sweep_rows, texts, fresh)
        self._held[sweep_rows.metric_set.name] = sweep_rows.metric_set, now
        return frame
