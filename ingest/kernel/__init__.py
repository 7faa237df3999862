"""Reading the kernel: its files, its sockets and its system calls, by the standard library alone."""
