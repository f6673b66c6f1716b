"""Running a network: the driver of a fold without failures, and, on the same parts, the nodes."""
