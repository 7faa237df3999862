from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from crosswind.data.schema.facts import Facts
from crosswind.ingest.probe.software_facts import software_facts


def torch(nccl: Any, **versions: str | None) -> dict[str, Any]:
    cuda = SimpleNamespace(nccl=SimpleNamespace(version=nccl))
    return {"torch": SimpleNamespace(__version__="2.4.0+cu124", version=SimpleNamespace(**versions), cuda=cuda)}


def broken() -> object:
    raise RuntimeError("built without NCCL")


def test_pytorch_states_its_version_and_what_it_was_built_with() -> None:
    facts = software_facts(torch(lambda: (2, 21, 5), cuda="12.4", hip=None))
    assert facts == {"framework": "PyTorch", "framework_version": "2.4.0+cu124", "cuda": "12.4", "nccl": "2.21.5"}
    assert Facts.of(facts).cuda == "12.4"


@pytest.mark.parametrize("versions", [{"cuda": "12.4", "hip": None}, {"cuda": None, "hip": None}, {}])
def test_a_build_without_nccl_is_no_failure(versions: dict[str, str | None]) -> None:
    assert "nccl" not in software_facts(torch(broken, **versions))


def test_the_framework_is_the_one_that_is_loaded() -> None:
    jax = ModuleType("jax")
    assert software_facts({"jax": jax, "numpy": ModuleType("numpy")}) == {"framework": "JAX"}
    assert software_facts({"numpy": ModuleType("numpy")}) == {}
