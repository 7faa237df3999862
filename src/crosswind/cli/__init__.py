"""The command line: one file a verb, loaded only when it is used."""
