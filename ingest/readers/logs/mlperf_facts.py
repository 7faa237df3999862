"""Facts about the system and its software in MLPerf's system descriptions."""

import re
from collections.abc import Mapping

from crosswind.data.schema.facts import Facts, bytes_fact, count_fact, text_fact, version_in

FRAMEWORKS = ("PyTorch", "TensorFlow", "MXNet", "JAX", "HugeCTR", "PaddlePaddle", "MindSpore", "OneFlow", "LBANN")
_OF = r"(?:[ _]version)?[^\w.]*v?(\d+(?:\.\d+)*)"
VERSIONS = {
    "cuda": re.compile(rf"\bcuda{_OF}", re.IGNORECASE),
    "rocm": re.compile(rf"\brocm{_OF}", re.IGNORECASE),
    "nccl": re.compile(rf"\b[nr]ccl{_OF}", re.IGNORECASE),
    "driver": re.compile(rf"(?:\b|_)driver{_OF}", re.IGNORECASE),
}


def described_facts(system: Mapping[str, object]) -> Facts:
    """Return the facts that a description of a system states.

    Source: github.com/mlcommons/policies, submission_rules.adoc, "System description".
    """
    name, version = _framework(text_fact(system.get("framework")) or "")
    stack = _flat(system.get("other_software_stack"))
    versions = {fact: match[1] if (match := pattern.search(stack)) else None for fact, pattern in VERSIONS.items()}
    return Facts(
        accelerator=text_fact(system.get("accelerator_model_name")),
        accelerators_per_node=count_fact(system.get("accelerators_per_node"), least=0),
        accelerator_memory_bytes=bytes_fact(system.get("accelerator_memory_capacity")),
        node_count=count_fact(system.get("number_of_nodes")),
        processor=text_fact(system.get("host_processor_model_name")),
        processors_per_node=count_fact(system.get("host_processors_per_node")),
        device_link=text_fact(system.get("accelerator_interconnect")),
        interconnect=text_fact(system.get("host_networking")),
        framework=name,
        framework_version=version,
        cuda=versions["cuda"],
        rocm=versions["rocm"],
        nccl=versions["nccl"],
        driver=versions["driver"],
    )


def _framework(text: str) -> tuple[str | None, str | None]:
    """Return the framework and its version; of one that is not in FRAMEWORKS the whole text."""
    lowered = text.lower()
    name = next((name for name in FRAMEWORKS if name.lower() in lowered), None)
    return (name or text or None), version_in(text)


def _flat(stack: object) -> str:
    """Return names with their versions as one text, which some descriptions write themselves."""
    if isinstance(stack, Mapping):
        return ", ".join(f"{name} {version}" for name, version in stack.items())
    return stack if isinstance(stack, str) else ""
