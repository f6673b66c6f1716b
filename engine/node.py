"""The node: ports, heads, release, Consistency Manager and outputs behind ``handle(event, now_us) -> effects``.

Every event ends in one *turn*: stable heads fold what is complete, states are derived, what is due is released to
tentative heads, corrections are marked. Only ``Wake`` and ``Again`` look at deadlines and at silence, and a driver
gives them behind everything that has arrived: a node that was held up does not take its own delay for a failure of
its inputs. What must be corrected waits for a turn of its own (``Again``): a burst of corrections never holds up what
is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from evenflow.engine.consistency_manager import ConsistencyManager
from evenflow.engine.dispatch import Dispatcher, Rates, ReplayName
from evenflow.engine.inputs import Came, Inputs, Origin
from evenflow.engine.messages import (
    Ack,
    Again,
    CameBack,
    Control,
    Effect,
    Event,
    Failed,
    HandOut,
    Message,
    Persist,
    Persisted,
    Ping,
    Pong,
    Received,
    Redone,
    Restart,
    Send,
    Start,
    StateOffer,
    StateRequest,
    Subscribe,
    Unsubscribe,
    Wake,
    WakeAt,
)
from evenflow.engine.publisher import Publisher, Replay
from evenflow.engine.recovery import Recovery
from evenflow.engine.release import POLICIES, PolicyName, Release
from evenflow.engine.snapshot import Snapshot
from evenflow.engine.threshold import Threshold
from evenflow.engine.watch import OverloadWatch, SkewWatch
from evenflow.operators.items import Data, RecDone
from evenflow.operators.kernel import Kernel
from evenflow.operators.plan import FoldPlan
from evenflow.operators.soutput import SOutput
from evenflow.operators.times import FINAL, START
from evenflow.reconcile.cost import chooser
from evenflow.reconcile.heads import Advanced, Heads, Output
from evenflow.reconcile.job import RedoJob, Replayed
from evenflow.reconcile.state import State

R = TypeVar("R")
SESSIONS_MAX = 1_000_000
"""Sessions of one incarnation: the next one counts on from there."""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """What a node is told when it starts."""

    name: str
    upstream: Mapping[int, Origin]
    """Where each input stream comes from."""
    consumers: Mapping[str, Sequence[str]]
    """The addresses that read each output stream."""
    bucket_us: int
    threshold: Threshold
    heartbeat_us: int
    slice_rows: int
    """About how many rows fit into one slice of redo."""
    reconcile: str = "auto"
    on_failure: PolicyName = "process"
    on_stabilization: PolicyName = "process"
    replay: Replay = field(default_factory=Replay)
    redo: ReplayName = "local"
    """Where redo runs."""
    rates: Rates = field(default_factory=Rates)
    """What redo costs, as far as it is known at the start."""
    replica: int = 1
    margin_us: int = 300_000
    """By how much another replica must lead to be switched to."""
    partners: Sequence[str] = ()
    """The node's other replicas."""
    checkpoint_us: int = 1_000_000
    """How often a checkpoint is made durable."""


class Node(Generic[R]):
    """The protocol core of one node."""

    def __init__(self, config: NodeConfig, plan: FoldPlan[R], kernel: Kernel[R]) -> None:
        self.config = config
        self.released = START
        """How far inputs were released to the tentative heads in this failure."""
        self._kernel = kernel
        origins = {number: config.upstream[number] for number in plan.inputs}
        self.inputs: Inputs[R] = Inputs(
            config.name, origins, kernel, config.heartbeat_us, config.margin_us, config.replica
        )
        self.heads: Heads[R] = Heads(plan, config.bucket_us, kernel, chooser(config.reconcile, plan.inputs))
        self.manager = ConsistencyManager(config.name, self.heads, config.threshold.hold_us)
        self._release = Release(config.threshold, config.bucket_us)
        self._soutputs = {name: SOutput(kernel) for name in plan.outputs}
        self.publishers = {
            name: Publisher(name, plan.empty(number), kernel, config.consumers.get(name, ()), config.replay)
            for name, number in plan.outputs.items()
        }
        self._skew = SkewWatch(config.name, config.threshold.hold_us)
        self._overload = OverloadWatch(config.name, config.threshold.x_us)
        self.dispatcher = Dispatcher(config.redo, replace(config.rates), config.threshold.hold_us)
        self._sliced_rows = 0
        self._sliced_at_us = 0
        """The last slice of redo. The next one comes when it and the inputs that waited behind it are done."""
        self._slicing = False
        """Whether a slice of redo is asked for and has not begun."""
        self._incarnation = 0
        self._recovery: Recovery[R] | None = None
        self._persist_at_us = 0
        self._persisting: dict[int, dict[int, int]] = {}
        """What each input needs next behind checkpoints that are not durable yet, by their numbers."""
        self._heartbeat_at_us = 0
        self._read_all = False
        """Whether everything that has arrived was read before this turn."""

    def handle(self, event: Event, now_us: int) -> list[Effect]:
        """The only way in: what happened, and when."""
        self._read_all = isinstance(event, Start | Wake | Again)
        if isinstance(event, Start) and event.incarnation:
            self._incarnation = event.incarnation
            self._recovery = Recovery(self.config.partners, self.config.heartbeat_us, event.checkpoint)
        if self._recovery is not None:
            return list(self._recover(self._recovery, event, now_us))
        return list(self._handle(event, now_us))

    @property
    def recovering(self) -> bool:
        """Whether it was started anew and has no state yet."""
        return self._recovery is not None

    def _recover(self, recovery: Recovery[R], event: Event, now_us: int) -> Iterator[Effect]:
        """Get a state, and serve nobody until there is one."""
        match event:
            case Received(sender, Ping(number)):
                yield Send(sender, Pong(number, self._incarnation, {}))
            case Received(sender, StateRequest()):
                yield Send(sender, StateOffer(None))
            case Received(sender, StateOffer() as offer):
                snapshot = recovery.offered(sender, offer)
                if snapshot is not None:
                    yield from self._recovered(snapshot, f"the state of {sender}", now_us)
                elif recovery.alone(now_us):
                    yield from self._recovered(*recovery.own, now_us)
            case Start() | Wake():
                yield from recovery.ask(now_us)
                if recovery.alone(now_us):
                    yield from self._recovered(*recovery.own, now_us)
                yield WakeAt(now_us + self.config.heartbeat_us)
            case _:
                pass

    def _recovered(self, snapshot: Snapshot[R] | None, what: str, now_us: int) -> Iterator[Effect]:
        """Go on from a state, or from the very beginning."""
        self._recovery = None
        if snapshot is not None:
            self._restore(snapshot)
        yield Control("RECOVERED", self.config.name, f"from {what}")
        yield from self.inputs.start(now_us, first_session=self._incarnation * SESSIONS_MAX)
        yield WakeAt(now_us + self.config.heartbeat_us)

    def snapshot(self) -> Snapshot[R]:
        """The stable side, for a partner or a disk."""
        return Snapshot(
            self.heads.snapshot(),
            {number: port.position for number, port in self.inputs.ports.items()},
            {name: out.snapshot(self._soutputs[name].produced) for name, out in self.publishers.items()},
        )

    def _restore(self, snapshot: Snapshot[R]) -> None:
        self.heads.restore(snapshot.fragments)
        for number, position in snapshot.inputs.items():
            self.inputs.ports[number].restore(position)
        for name, taken in snapshot.outputs.items():
            self.publishers[name].restore(taken)
            self._soutputs[name].restore(taken.produced, taken.last.time)

    def _handle(self, event: Event, now_us: int) -> Iterator[Effect]:
        match event:
            case Received(sender, Subscribe() | Unsubscribe() | Ack() | Ping() | StateRequest() as asked):
                yield from self._served(sender, asked, now_us)
                return
            case Persisted(number):
                yield from self._persisted(number)
                return
            case Received(sender, Pong() as pong):
                yield from self.inputs.answered(sender, pong, now_us)
                return
            case Received(sender, Message() as message):
                came = yield from self.inputs.receive(sender, message, now_us)
                if came is None:
                    return
                yield from self._insert(came, now_us)
            case CameBack(job, replayed, took_us):
                yield from self._came_back(job, replayed, took_us, now_us)
            case Failed(job, reason):
                yield from self._failed(job, reason)
            case Again():
                self.dispatcher.rates.folded_here(self._sliced_rows, now_us - self._sliced_at_us)
            case Start():
                yield from self.inputs.start(now_us)
            case _:
                pass
        if self._read_all and now_us >= self._heartbeat_at_us:
            yield from self._heartbeat(now_us)
        yield from self._advance(now_us)
        yield from self._go_on(now_us, eager=not self._slicing)
        if isinstance(event, Again):
            self._slicing = False
            yield from self._advance(now_us, self.config.slice_rows)
            yield from self._go_on(now_us, eager=True)
        yield from self._wake(now_us)

    def _served(
        self, sender: str, asked: Subscribe | Unsubscribe | Ack | Ping | StateRequest, now_us: int
    ) -> Iterator[Effect]:
        """Do what a consumer or a partner asks for."""
        match asked:
            case Subscribe():
                yield from self.publishers[asked.stream].subscribe(sender, asked, now_us)
            case Unsubscribe():
                self.publishers[asked.stream].unsubscribe(sender, asked)
            case Ack():
                self.publishers[asked.stream].acknowledged(sender, asked)
            case Ping():
                views = {
                    name: publisher.view(self.manager.outputs[name]) for name, publisher in self.publishers.items()
                }
                for publisher in self.publishers.values():
                    publisher.heard(sender, now_us)
                yield Send(sender, Pong(asked.number, self._incarnation, views))
            case StateRequest():
                yield Send(sender, StateOffer(self.snapshot()))

    def _insert(self, came: Came[R], now_us: int) -> Iterator[Effect]:
        """Put what is new into the SUnions."""
        item = came.item
        if isinstance(item, RecDone):
            self.heads.clear_tentative(came.number, item.upto)
        if not isinstance(item, Data):
            return
        if item.stable:
            self.heads.insert(came.number, item.rows, item.boundary.time)
        else:
            self.heads.insert_tentative(came.number, item.rows, item.boundary.time, item.missing)
        seen = FINAL if item.boundary.time == FINAL else item.boundary.evidence
        self._release.arrived(seen, self._kernel.latest(item.rows), now_us)
        if not came.replayed:
            ports = self.inputs.ports
            others = [port.seen for number, port in ports.items() if number != came.number]
            yield from self._skew.arrived(self.heads.plan.names[came.number], ports[came.number].seen, others)

    def _heartbeat(self, now_us: int) -> Iterator[Effect]:
        """Signs of life to consumers; questions and acknowledgements to producers, new sessions with silent ones."""
        self._heartbeat_at_us = now_us + self.config.heartbeat_us
        for publisher in self.publishers.values():
            yield from publisher.heartbeats(now_us, self.config.heartbeat_us)
        yield from self.inputs.heartbeat(now_us)
        if self.inputs.too_old(now_us):
            yield Restart("every upstream log begins behind what is needed next")
        if now_us >= self._persist_at_us:
            self._persist_at_us = now_us + self.config.checkpoint_us
            number = max(self._persisting, default=0) + 1
            self._persisting[number] = {stream: port.next_id for stream, port in self.inputs.ports.items()}
            yield Persist(number, self.snapshot())

    def _persisted(self, number: int) -> Iterator[Effect]:
        """A checkpoint is durable: what came before it need not be kept upstream any more."""
        safe = self._persisting.get(number)
        self._persisting = {later: needed for later, needed in self._persisting.items() if later > number}
        if safe is not None:
            yield from self.inputs.acknowledge(safe)

    def _go_on(self, now_us: int, eager: bool) -> Iterator[Effect]:
        """Derive states, and let tentative heads go on as far as they may."""
        yield from self._states(now_us)
        self._let_go(now_us, eager)
        if self.released > START or self.heads.failing:
            yield from self._publish_tentative(self.heads.release(self.released), now_us)
        yield from self._states(now_us)

    def _advance(self, now_us: int, redo_rows: int = 0) -> Iterator[Effect]:
        """Fold complete buckets; where there is something to correct, about ``redo_rows`` rows of them."""
        arriving = self.inputs.correcting
        self.dispatcher.arriving = bool(arriving)
        done = self.heads.advance(redo_rows, now_us, self.dispatcher, arriving)
        if redo_rows:  # where nothing is left, the time to the next slice says nothing of this one
            self._sliced_rows, self._sliced_at_us = (done.corrected if done.more else 0), now_us
        for job in done.jobs:
            yield Control("REPLAY", self._where(job.number), f"{job.n_rows} rows on {self.dispatcher.name}")
            yield HandOut(job)
        yield from self._advanced(done, now_us)

    def _came_back(self, job: RedoJob[R], replayed: Replayed[R], took_us: int, now_us: int) -> Iterator[Effect]:
        """Redo that ran elsewhere is done."""
        if self.heads.fragments[job.number].away is job:
            self.dispatcher.done(job.number, job.n_rows, took_us)
            yield from self._advanced(self.heads.came_back(job.number, replayed, self.dispatcher.name, now_us), now_us)

    def _failed(self, job: RedoJob[R], reason: str) -> Iterator[Effect]:
        """Redo that ran elsewhere failed: state and input are still here."""
        fragment = self.heads.fragments[job.number]
        if fragment.away is job:
            fragment.away = None
            then = self.dispatcher.failed(job.number)
            yield Control("REPLAY_FAILED", self._where(job.number), f"{reason}; {then}")

    def _where(self, number: int) -> str:
        names = [self.heads.plan.names[leaf] for leaf in self.heads.fragments[number].fragment.leaves]
        return f"{self.config.name}:{','.join(names)}"

    def _advanced(self, done: Advanced[R], now_us: int) -> Iterator[Effect]:
        """Send what stable heads gave, and say what was redone."""
        for number in done.undone:
            yield Control("UNDO_START", self._where(number))
        self.manager.redone(done.redone)
        here = sum(rows for how, rows in done.redone.items() if how.executor == "local")
        if here:
            yield Redone(here)
        yield from self._publish_stable(done.outputs, now_us)
        if done.redone and not self.dispatcher.arriving:
            backlog = sum(fragment.sunion.complete_rows for fragment in self.heads.fragments if fragment.failing)
            yield from self._overload.observe(backlog, now_us)
        if done.more and not self._slicing:
            self._slicing = True
            yield Again()

    def _let_go(self, now_us: int, eager: bool) -> None:
        """Decide how far the tentative heads may go; not ``eager``: only what is due, for redo may bring it stable."""
        facing = [f.sunion.cursor for f in self.heads.fragments if any(place.name for place in f.places)]
        due = self._release.expire(now_us if self._read_all else START, min(facing))
        self.heads.want(due)
        if not self.heads.failing:
            self._release.reset()
            self.released = START
            return
        name = self.config.on_failure
        if self.manager.state == State.STABILIZATION:
            name = self.config.on_stabilization
        if name == "process" and (self._overload.overloaded or not eager):
            name = "delay"
        reached = [port.reached for port in self.inputs.ports.values()]
        seen = max(port.seen for port in self.inputs.ports.values())
        self.released = POLICIES[name](due, self.released, reached, seen, self.config.bucket_us)

    def _states(self, now_us: int) -> Iterator[Effect]:
        """Derive states; where a correction ended, mark it."""
        yield from self.manager.update(now_us, self.inputs.correcting)
        self.dispatcher.settled(number for number, f in enumerate(self.heads.fragments) if not f.failing)
        for name, state in self.manager.outputs.items():
            if state == State.STABLE:
                yield from self._rec_done(name, True, now_us)
            elif state == State.UP_FAILURE and not self.manager.correcting(name):
                yield from self._rec_done(name, False, now_us)

    def _rec_done(self, name: str, met: bool, now_us: int) -> Iterator[Effect]:
        mark = self._soutputs[name].rec_done(met)
        if mark is not None:
            yield from self.publishers[name].publish(mark, now_us)

    def _publish_stable(self, outputs: Iterable[Output[R]], now_us: int) -> Iterator[Effect]:
        for output in outputs:
            soutput = self._soutputs[output.name]
            mark = soutput.undo()
            if mark is not None:
                yield from self.publishers[output.name].publish(mark, now_us)
            yield from self.publishers[output.name].publish(
                soutput.emit(output.rows, output.boundary, self._seen(output)), now_us
            )

    def _publish_tentative(self, outputs: Iterable[Output[R]], now_us: int) -> Iterator[Effect]:
        for output in outputs:
            missing = output.missing or frozenset()
            item = self._soutputs[output.name].emit_tentative(output.rows, output.boundary, missing, self._seen(output))
            if item is not None:
                yield from self.publishers[output.name].publish(item, now_us)

    def _seen(self, output: Output[R]) -> int:
        """How far time has passed for an output: as far as its fragments folded, and as any input above it knows."""
        above, names = self.heads.above(output.name), self.heads.plan.names
        seen = [port.seen for number, port in self.inputs.ports.items() if names[number] in above]
        return min(output.cursor, max(seen))

    def _wake(self, now_us: int) -> Iterator[Effect]:
        """Come back for the next deadline; for one that has passed as soon as everything was read."""
        times = [max(time, now_us) for time in (self._heartbeat_at_us, self._release.next_us) if time is not None]
        settled_us = self.manager.next_us()
        if settled_us is not None and settled_us > now_us:
            times.append(settled_us)
        yield WakeAt(min(times))
