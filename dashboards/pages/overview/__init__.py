"""The Overview page: what costs time, what runs, and what is wrong, a block each."""
