"""The parts of `crosswind.optuna` and `crosswind.raytune`: studies that those packages keep, in our terms."""
