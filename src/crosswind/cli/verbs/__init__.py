"""Verbs: `crosswind VERB ...`, one module each; `VERBS` in `crosswind.cli.main` lists them."""
