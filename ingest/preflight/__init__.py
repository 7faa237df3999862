"""Measurements of nodes and their network before a job: `crosswind check`; heavy imports only when used."""
