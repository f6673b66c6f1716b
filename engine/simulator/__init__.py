"""Runs cores in virtual time: links that delay, cut and heal, and checkers of what comes out. One seed, one run."""
