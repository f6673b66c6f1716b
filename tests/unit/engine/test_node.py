"""The node as a machine: events and times in, effects out."""

from __future__ import annotations

from typing import Any

from evenflow.engine.inputs import Origin
from evenflow.engine.messages import (
    Ack,
    Again,
    Control,
    Effect,
    Message,
    Persist,
    Persisted,
    Received,
    Reconciled,
    Redone,
    Send,
    Start,
    StateChanged,
    Subscribe,
    Wake,
    WakeAt,
)
from evenflow.engine.node import Node, NodeConfig
from evenflow.engine.threshold import Threshold, Timing
from evenflow.operators.items import Boundary, Data, RecDone, Undo
from evenflow.operators.kernel import ListKernel
from list_plans import ListPlan, Pass

MS = 1_000
X_US = 1_000 * MS
TIMING = Timing(100 * MS, 100 * MS, 10 * MS, 1 * MS)
HOLD_US = Threshold.fit("main", X_US, TIMING).hold_us


class Wire:
    """A node that merges s0 and s1 into ``out``, its two sources, and a client."""

    def __init__(self, **changes: Any) -> None:
        plan = ListPlan({0: "s0", 1: "s1"})
        plan.outputs["out"] = plan.add(Pass(), 0, 1)
        settings: dict[str, Any] = {"slice_rows": 1_000, **changes}
        upstream = {n: Origin((f"s{n}",), f"s{n}") for n in (0, 1)}
        threshold = Threshold.fit("main", X_US, TIMING)
        config = NodeConfig("main/1", upstream, {"out": ["c"]}, 100 * MS, threshold, 100 * MS, **settings)
        self.node: Node[Any] = Node(config, plan, ListKernel())
        self.started = self.node.handle(Start(), 0)
        self.node.handle(Received("c", Subscribe("out", 1, 1, -(2**63), -(2**63))), 0)
        self.numbers: dict[tuple[str, int], int] = {}
        """The next message of each source in each session: one that the node asks for is answered at once."""
        self._ids = {"s0": 1, "s1": 1}

    def send(self, source: str, stamps_ms: list[int], boundary_ms: int, now_ms: int) -> list[Effect]:
        rows = [(t * MS, 0, t, source, t) for t in stamps_ms]
        first_id = self._ids[source]
        self._ids[source] += len(rows)
        item = Data(rows, first_id, Boundary(boundary_ms * MS, True, first_id + len(rows) - 1))
        session = self.node.inputs.ports[int(source[1])].session
        number = self.numbers.get((source, session), 0)
        self.numbers[source, session] = number + 1
        message = Message(source, session, number, item)
        return self.node.handle(Received(source, message), now_ms * MS)

    def settle(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """Give the node every turn that it asks for."""
        told = list(effects)
        while Again() in effects:
            effects = self.node.handle(Again(), now_ms * MS)
            told += effects
        return told

    def wake(self, now_us: int) -> list[Effect]:
        return self.node.handle(Wake(), now_us)


def sent(effects: list[Effect]) -> list[Any]:
    """What the client was sent: (stable, times in ms, boundary in ms), or a mark."""
    items = [e.payload.item for e in effects if isinstance(e, Send) and e.to == "c"]
    return [
        (item.stable, [row[0] // MS for row in item.rows], item.boundary.time // MS) if isinstance(item, Data) else item
        for item in items
        if isinstance(item, Data | Undo | RecDone)
    ]


def of(effects: list[Effect], kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def failed(**changes: Any) -> Wire:
    """s1 went silent at 100 ms; αX later what s0 sent is out tentatively."""
    wire = Wire(**changes)
    wire.send("s0", [10], 100, 100)
    wire.send("s1", [20], 100, 100)
    wire.send("s0", [110], 200, 200)
    wire.wake(200 * MS + HOLD_US)
    return wire


def test_a_node_subscribes_to_its_inputs_when_it_starts() -> None:
    sends = of(Wire().started, Send)
    asked = [(e.to, e.payload.stream, e.payload.next_id) for e in sends if isinstance(e.payload, Subscribe)]
    assert asked == [("s0", "s0", 1), ("s1", "s1", 1)]


def test_a_bucket_goes_out_stable_as_soon_as_it_is_complete() -> None:
    wire = Wire()
    assert sent(wire.send("s0", [10], 100, 100)) == []
    assert sent(wire.send("s1", [20], 100, 101)) == [(True, [10, 20], 100)]


def test_what_is_due_goes_out_tentatively_and_the_state_says_so() -> None:
    """1. s1 goes silent. 2. αX after s0's boundary the bucket is released. 3. Not a microsecond before."""
    wire = Wire()
    wire.send("s0", [10], 100, 100)
    wire.send("s1", [20], 100, 100)
    effects = wire.send("s0", [110], 200, 200)
    assert of(effects, WakeAt)[0].time_us <= 200 * MS + HOLD_US
    assert sent(wire.wake(200 * MS + HOLD_US - 1)) == []
    effects = wire.wake(200 * MS + HOLD_US)
    assert sent(effects) == [(False, [110], 200)]
    (item,) = [e.payload.item for e in of(effects, Send) if e.to == "c" and isinstance(e.payload.item, Data)]
    assert item.missing == {"s1"}
    assert [(e.state, e.output) for e in of(effects, StateChanged)] == [("UP_FAILURE", "out"), ("UP_FAILURE", None)]
    assert [e.kind for e in of(effects, Control)] == ["UP_FAILURE"]


def test_a_correction_is_undone_sent_and_marked_as_done() -> None:
    wire = failed()
    effects = wire.settle(wire.send("s1", [120], 200, 2_000), 2_000)
    assert sent(effects) == [Undo(2), (True, [110, 120], 200), RecDone(200 * MS)]
    assert [e.state for e in of(effects, StateChanged) if e.output is None] == ["STABILIZATION", "STABLE"]
    assert [(e.method, e.rows) for e in of(effects, Reconciled)] == [("checkpoint", 2)]
    assert [e.kind for e in of(effects, Control)] == ["REC_REQUEST", "REC_DONE"]


def test_redo_is_cut_into_slices_and_live_rows_go_between_them() -> None:
    """1. Ten buckets wait. 2. s1's replay completes them. 3. Redo asks for turns. 4. Live rows get in between."""
    wire = failed(slice_rows=1)
    for n in range(2, 11):
        wire.send("s0", [n * 100 + 10], n * 100 + 100, n * 100 + 100)
    wire.wake(1_100 * MS + HOLD_US)
    effects = wire.send("s1", [], 1_100, 2_000)
    assert of(effects, Redone) == []
    assert of(effects, Again) == [Again()]
    live = wire.send("s0", [1_110], 1_200, 2_001)
    assert of(live, Redone) + of(live, Again) == [], "a turn was asked for already"
    slices = 0
    while of(effects, Again):
        effects = wire.node.handle(Again(), (2_002 + slices) * MS)
        slices += 1
        assert [e.rows for e in of(effects, Redone)] == [1]
    assert slices == 10
    assert wire.node.manager.state == "STABLE"


def test_a_burst_of_corrections_does_not_hold_up_what_is_new() -> None:
    """1. s1's replay comes in ten messages. 2. None of them folds anything. 3. A deadline in between is kept."""
    wire = failed(on_failure="delay", on_stabilization="delay")
    for n in range(2, 11):
        wire.send("s0", [n * 100 + 10], n * 100 + 100, n * 100 + 100)
    released = []
    for n in range(2, 11):
        effects = wire.send("s1", [], n * 100, 200 + n * 100 + HOLD_US // MS)
        effects += wire.wake(200 * MS + n * 100 * MS + HOLD_US)
        assert of(effects, Redone) == []
        released += sent(effects)
    assert not any(stable for stable, *_ in released)
    assert [row for _, rows, _ in released for row in rows] == [n * 100 + 10 for n in range(2, 11)]
    assert released[-1] == (False, [1_010], 1_100)


def test_heads_that_meet_without_a_change_are_marked_too() -> None:
    """With undo/redo nothing is folded again when the missing input turns out to be empty, but it must be told."""
    wire = failed(reconcile="undo")
    effects = wire.settle(wire.send("s1", [], 200, 2_000), 2_000)
    assert sent(effects) == [Undo(2), (True, [110], 200), RecDone(200 * MS)]
    assert of(effects, Redone) == [] or of(effects, Redone)[0].rows == 0


def test_suspend_releases_nothing_and_says_that_it_fails() -> None:
    wire = failed(on_failure="suspend")
    assert wire.node.manager.state == "UP_FAILURE"
    effects = wire.send("s0", [210], 300, 1_500)
    assert sent(effects) == []


def test_process_releases_at_once_what_delay_holds_until_its_deadline() -> None:
    assert sent(failed(on_failure="process").send("s0", [210], 300, 1_500)) == [(False, [210], 300)]
    waiting = failed(on_failure="delay")
    assert sent(waiting.send("s0", [210], 300, 1_500)) == []
    assert sent(waiting.wake(1_500 * MS + HOLD_US)) == [(False, [210], 300)]


def test_a_lost_message_is_asked_for_and_nothing_of_its_successor_is_taken() -> None:
    wire = Wire()
    wire.numbers["s0", 1] = 1
    effects = wire.send("s0", [10], 100, 100)
    assert [(e.to, e.payload.session) for e in of(effects, Send) if isinstance(e.payload, Subscribe)] == [("s0", 2)]
    assert wire.node.heads.buffered_rows == 0


def test_what_a_durable_checkpoint_holds_is_acknowledged() -> None:
    wire = Wire()
    wire.send("s0", [10], 100, 99)
    effects = wire.wake(1_250 * MS)
    assert [e.payload for e in of(effects, Send) if isinstance(e.payload, Ack)] == [], "nothing is durable yet"
    (persist,) = of(effects, Persist)
    effects = wire.node.handle(Persisted(persist.number), 1_260 * MS)
    acks = [(e.to, e.payload.next_id) for e in of(effects, Send) if isinstance(e.payload, Ack)]
    assert acks == [("s0", 2)]
