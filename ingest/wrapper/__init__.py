"""The wrapper behind `crosswind run`: it records a program from outside."""
