"""The vocabulary of all layers: what is recorded, asked and answered, as plain dataclasses, and the errors."""
