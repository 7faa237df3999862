"""Figures: data frame in, a small dataclass of what will be drawn, and from that a plotly figure."""
