"""Replay of buffered input by many workers: spilled as Arrow files, folded part by part, merged."""
