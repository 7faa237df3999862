"""Readers of other tools' formats; `formats` lists them."""
