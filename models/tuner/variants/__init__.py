"""Choices of a code's variant for an input: by the features of a context, from what other contexts showed."""

from crosswind.models.tuner.variants.chooser import VariantChooser
from crosswind.models.tuner.variants.context_tuner import ContextTuner
from crosswind.models.tuner.variants.experience import Choice, Context, Experience
from crosswind.models.tuner.variants.matrix_features import matrix_features

__all__ = ["Choice", "Context", "ContextTuner", "Experience", "VariantChooser", "matrix_features"]
