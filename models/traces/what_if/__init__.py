"""The time of a run if one cause of its losses were taken out."""
