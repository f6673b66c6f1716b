"""Heads of a plan's fold: what is folded, how far, and how it is brought back to even."""
