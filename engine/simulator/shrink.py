"""Make a failing schedule small: as few faults as still fail, each as short and as round as still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from evenflow.engine.simulator.faults import Crash, Fault, Skew
from evenflow.operators.times import readable

Fails = Callable[[Sequence[Fault]], bool]
ROUND_US = (1_000_000, 100_000, 10_000, 1_000)
TRIES_MAX = 400


def shrink(faults: Sequence[Fault], fails: Fails) -> list[Fault]:
    """The smallest schedule found for which ``fails`` still says yes.

    >>> from evenflow.engine.simulator.faults import Cut
    >>> schedule = [Cut("a", 1_234_567, 9_000_000), Cut("b", "1s", "2s")]
    >>> shrink(schedule, lambda faults: any(f.where == "a" and f.span_us[1] > 3_000_000 for f in faults))
    [Cut(where='a', start='3s', end='3.5s')]
    """
    smallest, tries = list(faults), 0
    changed = True
    while changed and tries < TRIES_MAX:
        changed = False
        for smaller in _smaller(smallest):
            tries += 1
            if fails(smaller):
                smallest, changed = smaller, True
                break
    return smallest


def _smaller(faults: list[Fault]) -> Iterator[list[Fault]]:
    """Schedules that are simpler by one thing, the simplest first."""
    for i in range(len(faults)):
        yield faults[:i] + faults[i + 1 :]
    for i, fault in enumerate(faults):
        for simpler in _simpler(fault):
            yield [*faults[:i], simpler, *faults[i + 1 :]]


def _simpler(fault: Fault) -> Iterator[Fault]:
    if isinstance(fault, Skew):
        return
    start, end = fault.span_us
    for unit in ROUND_US:
        length = end - start
        begin = start // unit * unit
        half = -(-length // 2 // unit) * unit
        if 0 < half < length:
            yield _spanned(fault, begin, begin + half)
        for begin, stop in (
            (start // unit * unit, -(-end // unit) * unit),
            (start, end - unit),
            (start + unit, end),
        ):
            if stop > begin and _size(begin, stop) < _size(start, end):
                yield _spanned(fault, begin, stop)


def _size(start: int, end: int) -> tuple[int, int]:
    """How long to read, then how long: round times are simpler."""
    return len(readable(start)) + len(readable(end)), end - start


def _spanned(fault: Fault, start: int, end: int) -> Fault:
    if isinstance(fault, Skew):
        return fault
    if isinstance(fault, Crash):
        return replace(fault, at=readable(start) if start else 0, restart=readable(end) if fault.restart else None)
    return replace(fault, start=readable(start) if start else 0, end=readable(end))


def as_test(name: str, expression: str, faults: Sequence[Fault], violations: Sequence[str]) -> str:
    """A schedule as the text of a test; ``expression`` gives its violations, with FAULTS where they go.

    >>> from evenflow.engine.simulator.faults import Cut
    >>> cut = [Cut("a", "1s", "2s")]
    >>> print(as_test("seed_7", "ef.simulate(app, inputs(7), FAULTS, 7).violations", cut, ["2 once"]))
    def test_seed_7() -> None:
        # 2 once
        faults = [ef.Cut(where='a', start='1s', end='2s')]
        assert ef.simulate(app, inputs(7), faults, 7).violations == []
    """
    told = ", ".join(f"ef.{fault!r}" for fault in faults)
    lines = [f"def test_{name}() -> None:", *(f"    # {violation}" for violation in violations[:3])]
    lines += [f"    faults = [{told}]", f"    assert {expression.replace('FAULTS', 'faults')} == []"]
    return "\n".join(lines)
