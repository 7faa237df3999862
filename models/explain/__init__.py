"""Why a run was slow: its excess over what was expected, split into causes that sum to it."""
