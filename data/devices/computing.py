"""The device that computes in a run."""

from crosswind.data.devices.sheets import device_named
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.trial import Configuration

ACCELERATOR = "accelerator"  # the parameter that names it where no fact does


def computing_device(facts: Facts, configuration: Configuration) -> str:
    """Return the name of the accelerator, or of the processor where there is none; empty where neither is known.

    It is the name in the table of devices, where that has it, else the one that the source gives.
    """
    named = facts.accelerator or str(configuration.get(ACCELERATOR) or "")
    if facts.accelerators_per_node == 0 and facts.processor:
        named = facts.processor
    device = device_named(named) if named else None
    return named if device is None else device.name
