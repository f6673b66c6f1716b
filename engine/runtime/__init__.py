"""Where clocks, processes, sockets and disks are: everything that the protocol core does not know."""
