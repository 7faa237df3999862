import numpy as np
import pytest
from tests.models.forecast.made_up_weather import shown, weather

from crosswind.models.forecast.observations import Lagged, Observations, targets_of
from crosswind.models.forecast.sequence import LENGTH, UNITS, Recurrent, query, sequences
from crosswind.models.surrogate.surrogate import NotFittedError


def test_the_network_reads_only_runs_known_before_the_cutoff() -> None:
    runs = Observations.of(shown(weather(60, daily=0.1, drift=0.1)))
    asked, _ = targets_of(runs, (1.0,))
    read = sequences(runs, asked)
    assert read.shape == (60, LENGTH, 4)
    before = [np.sum(runs.known_ns <= cutoff) for cutoff in asked.cutoff_ns]
    assert read[:, :, 3].sum(axis=1).tolist() == [min(count, LENGTH) for count in before]


def test_predicting_without_torch_is_what_torch_says() -> None:
    torch = pytest.importorskip("torch")
    runs = Observations.of(shown(weather(40, daily=0.2, drift=0.2)))
    network = Recurrent().fit(runs, Lagged((1.0,)), (0.0, 6.0))
    asked, _ = targets_of(runs, (3.0,))
    gates = torch.nn.GRU(4, UNITS, batch_first=True).double()
    gates.load_state_dict({name: torch.tensor(value) for name, value in network.weights.items() if "out." not in name})
    with torch.no_grad():
        state = gates(torch.tensor(sequences(runs, asked)))[0][:, -1].numpy()
    out = np.column_stack([state, query(asked)]) @ network.weights["out.weight"].T + network.weights["out.bias"]
    assert network.predict(runs, asked) == pytest.approx(np.sort(out, axis=1), abs=1e-9)


def test_an_unfitted_network_is_refused() -> None:
    runs = Observations.of(shown(weather(50, daily=0.2, drift=0.2)))
    with pytest.raises(NotFittedError):
        Recurrent().predict(runs, targets_of(runs, (0.0,))[0])
