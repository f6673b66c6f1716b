"""A failing schedule is made small, and is printed as a test that fails for the same reason."""

from __future__ import annotations

import evenflow as ef
from evenflow.engine.port import Port
from evenflow.engine.simulator.shrink import as_test, shrink
from monitors import chain, steady


def test_a_broken_protocol_is_caught_shrunk_and_told_as_a_test(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Rows known from before are not skipped: only a replay that overlaps shows it, so one cut must be left."""
    monkeypatch.setattr(Port, "_tentative", lambda self, sender, item: item)
    faults = [
        ef.Slow("m3", "1s", "2s", "20ms"),
        ef.Cut("m2", 2_345_678, 6_789_012),
        ef.Cut("n0->n1", 4_000_321, 4_987_654),
        ef.Skew("m1", "10ms"),
    ]

    def fails(schedule) -> bool:  # type: ignore[no-untyped-def]
        return ef.simulate(chain(2, x="1s"), steady(9), schedule, seed=3).n_tentative("out") > 40

    assert fails(faults)
    small = shrink(faults, fails)
    assert len(small) == 1
    assert small[0].where == "m2"
    assert all(isinstance(time, str | int) and len(str(time)) <= 5 for time in (small[0].start, small[0].end))
    text = as_test("x", "ef.simulate(app, inputs, FAULTS, 3).violations", small, ["1 equal: …"])
    compile(text, "test", "exec")
    assert f"ef.{small[0]!r}" in text
