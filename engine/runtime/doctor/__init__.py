"""What is on this machine, and what to do about it: a module for each check."""
