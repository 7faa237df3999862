"""Segments of a run and of the other runs of its cohort, as the store has them, and what is usual among them."""
