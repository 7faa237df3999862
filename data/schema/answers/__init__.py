"""Answers, one dataclass each: models return them, the API sends them, the client gives them back, all show them."""
