"""The aims of a search: objectives, limits, and the Pareto front of several objectives."""
