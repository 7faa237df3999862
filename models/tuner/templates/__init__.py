"""Templates of common searches, which a study file takes over by `template: NAME`."""

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.templates.checkpointing_offload import CHECKPOINTING_OFFLOAD
from crosswind.models.tuner.templates.ddp import DDP
from crosswind.models.tuner.templates.fsdp_zero import FSDP_ZERO
from crosswind.models.tuner.templates.gloo import GLOO
from crosswind.models.tuner.templates.nccl import NCCL
from crosswind.models.tuner.templates.parallel_degrees import PARALLEL_DEGREES
from crosswind.models.tuner.templates.power import POWER
from crosswind.models.tuner.templates.sparsity import SPARSITY
from crosswind.models.tuner.templates.template import Template

__all__ = ["TEMPLATES", "Template", "template_named"]

TEMPLATES: tuple[Template, ...] = (
    DDP,
    FSDP_ZERO,
    PARALLEL_DEGREES,
    POWER,
    NCCL,
    GLOO,
    CHECKPOINTING_OFFLOAD,
    SPARSITY,
)


def template_named(name: object) -> Template:
    """Return the template of that name. Raises: InvalidInputError that names all there are."""
    match = next((template for template in TEMPLATES if template.name == name), None)
    if match is None:
        raise InvalidInputError(
            f"template is {name!r}, expected one of {', '.join(template.name for template in TEMPLATES)}"
        )
    return match
