"""Ways to break the protocol, each with the test that notices.

A mutant replaces one piece of text in a copy of the code. ``make mutants`` makes each copy, runs the named test in it,
and reports those that survive.
"""

from __future__ import annotations

import jobs
import protocol
import replicas
from mutant import Mutant

MUTANTS: list[Mutant] = [*protocol.MUTANTS, *jobs.MUTANTS, *replicas.MUTANTS]
