"""Answers on their way out: content codings, validators, and notices of what will end."""
