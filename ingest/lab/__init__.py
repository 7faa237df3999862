"""Known conditions and faults: measurements whose truth we set ourselves."""
