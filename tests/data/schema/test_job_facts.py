import pytest

from crosswind.data.schema.job import Job


@pytest.mark.parametrize(
    ("fields", "nodes", "facts"),
    [
        (
            {"AllocTRES": "billing=64,cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=500G,node=2"},
            2,
            {"accelerator": "a100", "accelerators": 8, "accelerators_per_node": 4, "node_count": 2},
        ),
        ({"TRES": "cpu=8,gres/gpu=3"}, 2, {"accelerators": 3, "node_count": 2}),
        (
            {"AllocTRES": "gres/gpu:a100=4,gres/gpu:v100=4"},
            None,
            {"accelerators": 8},
        ),
        ({"ngpus": "16"}, 4, {"accelerators": 16, "accelerators_per_node": 4, "node_count": 4}),
        ({"AllocTRES": "cpu=64,gres/gpumem=80G,gres/gpuutil=100"}, 1, {"node_count": 1}),
        ({"AllocTRES": "gres/gpu=many", "ngpus": "-2"}, 0, {}),
    ],
)
def test_an_account_states_its_nodes_and_accelerators(
    fields: dict[str, str], nodes: int | None, facts: dict[str, object]
) -> None:
    assert Job("alps", "4711", node_count=nodes, fields=fields).facts.given == facts
