"""``python -m evenflow``."""

from evenflow.cli import main

main()
