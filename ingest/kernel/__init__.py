"""Access to the kernel: its files, sockets and system calls, by the standard library alone."""
