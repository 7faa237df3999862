"""Figures of one run beyond its steps: its nodes, its course, who waited for whom."""
