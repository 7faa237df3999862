"""Measures nodes and their network before a job: `crosswind check`. Imports the standard library alone until used."""
