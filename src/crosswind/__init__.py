"""Why a distributed training run was slow, how long the next one will take, and which configuration to run."""

__version__ = "0.1.0"
