"""Accelerators and processors by their makers' data sheets, and the families of links that systems name."""
