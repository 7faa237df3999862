"""The next run of any workload on any system: a distribution, what it rests on, and how far from all that ever ran."""
