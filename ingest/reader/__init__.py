"""The protocol of readers of other tools' files, and reading lines of such files."""
