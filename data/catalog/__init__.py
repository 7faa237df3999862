"""The catalog: what is known about systems, jobs, runs and studies, in SQL."""
