"""Facts about the software of this process, from the modules that it has loaded."""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

FRAMEWORKS = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", "mxnet": "MXNet", "paddle": "PaddlePaddle"}


def software_facts(modules: Mapping[str, ModuleType | Any] = sys.modules) -> dict[str, str]:
    """Return framework, its version, and the versions of what it computes with, by their names in `Facts`.

    Nothing is imported, and no accelerator is touched.
    """
    module = next((name for name in FRAMEWORKS if name in modules), None)
    if module is None:
        return {}
    facts = {"framework": FRAMEWORKS[module], "framework_version": _text(modules[module], "__version__")}
    if module == "torch":
        version = getattr(modules["torch"], "version", None)
        facts |= {"cuda": _text(version, "cuda"), "rocm": _text(version, "hip"), "nccl": _nccl(modules["torch"])}
    return {name: value for name, value in facts.items() if value}


def _text(module: Any, name: str) -> str:
    value = getattr(module, name, None)
    return str(value)[:100] if value else ""


def _nccl(torch: Any) -> str:
    """Return the version of NCCL or RCCL that PyTorch was built with, empty without one."""
    try:
        if torch.version.cuda is None and torch.version.hip is None:
            return ""
        version = torch.cuda.nccl.version()
    except Exception:  # noqa: BLE001 - a build without it: the program goes on as without us
        return ""
    return ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
