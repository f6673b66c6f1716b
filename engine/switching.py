"""Which replica of an upstream neighbour each lane comes from (Borealis §3.5).

A state alone would be too late and too coarse: a node leaves STABLE only when it already shows tentative rows, and one
that was just started has nothing against it. So replicas are compared by the boundaries that heartbeats carry, and one
is left for another only when that leads by a margin. All streams of a neighbour come from the same replica: with
trees of neighbours that are not *valid* in this way a node could merge two inconsistent halves of one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evenflow.engine.messages import StreamView
from evenflow.engine.port import Feeds
from evenflow.reconcile.state import State

Views = Mapping[str, Mapping[str, StreamView]]
"""By replica and stream."""


def choose(current: Feeds, views: Views, needed: Mapping[str, int], margin_us: int) -> Feeds:
    """The replicas that stable rows and tentative ones come from, out of the living ones.

    ``needed`` is the next stable row of each stream that is read.

    >>> def at(time, state=State.STABLE): return {"s": StreamView(state, time, time, 1)}
    >>> here = {"s": 1}
    >>> choose(Feeds("a", "a"), {"a": at(100), "b": at(150)}, here, margin_us=60)
    Feeds(stable='a', tentative='a')
    >>> choose(Feeds("a", "a"), {"a": at(100), "b": at(170)}, here, margin_us=60)
    Feeds(stable='b', tentative='b')
    """
    able = {
        name: {stream: view[stream] for stream in needed} for name, view in views.items() if can_serve(view, needed)
    }
    if not able:
        return current
    stable = _best(current.stable, able, needed, margin_us, lambda view: view.stable)
    if all(view.state == State.STABLE for view in able[stable].values()):
        return Feeds(stable, stable)
    tentative = _best(current.tentative, able, needed, margin_us, lambda view: view.reached)
    if tentative != stable:
        behind = _behind(able[stable], able[tentative], lambda view: view.reached)
        tentative = stable if behind < margin_us else tentative
    return Feeds(stable, tentative)


def can_serve(view: Mapping[str, StreamView], needed: Mapping[str, int]) -> bool:
    """Whether a replica still has what the consumer needs next."""
    return all(stream in view and view[stream].first_id <= next_id for stream, next_id in needed.items())


def _best(
    current: str, able: Views, needed: Mapping[str, int], margin_us: int, time: Callable[[StreamView], int]
) -> str:
    """The current replica, unless it cannot serve or another one leads it by the margin in some stream."""
    order = sorted(able)
    first = max(order, key=lambda name: min(time(able[name][stream]) for stream in needed))
    if current not in able:
        return first
    leaders = [name for name in order if _behind(able[current], able[name], time) >= margin_us]
    leaders = [name for name in leaders if _behind(able[name], able[current], time) < margin_us]
    return first if first in leaders else leaders[0] if leaders else current


def _behind(one: Mapping[str, StreamView], other: Mapping[str, StreamView], time: Callable[[StreamView], int]) -> int:
    """By how much one replica is behind another one, in the stream where it is most."""
    return max(time(other[stream]) - time(view) for stream, view in one.items())


def stable_elsewhere(views: Views, stream: str, time: int, here: int, margin_us: int, apart_us: int) -> bool:
    """Whether a living replica has, or is about to have, stable what another one gives as tentative up to ``time``.

    It must lead what the consumer has stable, ``here``: one that stands at the same place is about to fail too. For
    that ``apart_us`` is enough, how far replicas that are well really are apart: its answer can only be too old.
    """
    return any(
        view[stream].state == State.STABLE and view[stream].stable >= max(time - margin_us, here + apart_us)
        for view in views.values()
        if stream in view
    )
