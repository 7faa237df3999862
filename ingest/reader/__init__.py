"""The protocol of readers of foreign files, and the lines of such files."""
