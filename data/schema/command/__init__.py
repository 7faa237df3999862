"""Command lines: the program that one starts, past its launchers, and the arguments of that program."""
