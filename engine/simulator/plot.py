"""A run as a picture: faults, delays against X, stable and tentative rows at the client, and states, over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.engine.linear import Stable, Tentative
from evenflow.engine.simulator.faults import Fault, Skew, Slow
from evenflow.engine.simulator.result import Result
from evenflow.engine.simulator.run import Run
from evenflow.engine.simulator.seen import allowance_us, new_rows
from evenflow.operators.errors import InputError, nearest
from evenflow.operators.items import Undo
from evenflow.operators.times import readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")
STABLE, TENTATIVE, FAULT = "#2b6ca3", "#e69f00", "#7f7f7f"
STATES = {"STABLE": "#a8d5b5", "UP_FAILURE": "#d55e00", "STABILIZATION": "#f0d442"}
WIDTH_INCHES = 10.0
ROW_INCHES = 0.28
PANEL_INCHES = 1.5
"""The height of a bar in the bands of faults and states, and of a panel of an output."""
HEAD_INCHES, GAP_INCHES, FOOT_INCHES = 0.75, 0.42, 1.05
"""What is above the first panel, between two, and below the last one."""
LETTER_INCHES = 0.075


def check_ending(path: Path) -> None:
    """Refuse, before anything is simulated, a file that cannot be drawn."""
    if path.suffix.lower() not in ENDINGS:
        known = nearest(path.suffix, ENDINGS)
        raise InputError(f"a plot cannot be written to {path}: the ending {path.suffix!r} is not known; {known}")
    if not path.parent.is_dir():
        raise InputError(f"a plot cannot be written to {path}: there is no folder {path.parent}")


def plot(result: Result, path: Path, title: str = "") -> None:
    """Draw a run into a file; its ending says how: .png, .svg or .pdf."""
    check_ending(path)
    figure(result, title).savefig(path, dpi=130)


def figure(result: Result, title: str = "") -> Figure:
    """The picture itself, for those who want to go on with it."""
    from matplotlib.figure import Figure

    run = result.run
    bands = _fault_bands(run)
    heights = [len(bands) * ROW_INCHES + 0.1] if bands else []
    heights += [PANEL_INCHES, PANEL_INCHES] * len(run.shown)
    heights.append(len(run.nodes) * ROW_INCHES + 0.1)
    labels = [*bands, *run.nodes]
    made = Figure(figsize=(WIDTH_INCHES, sum(heights) + GAP_INCHES * (len(heights) - 1) + HEAD_INCHES + FOOT_INCHES))
    panels = made.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0].tolist()
    width, height = made.get_size_inches()
    made.subplots_adjust(
        left=max(0.8, 0.2 + LETTER_INCHES * max(map(len, labels))) / width,
        right=1 - 0.25 / width,
        bottom=FOOT_INCHES / height,
        top=1 - HEAD_INCHES / height,
        hspace=GAP_INCHES / (sum(heights) / len(heights)),
    )
    left = list(panels)
    if bands:
        _draw_bands(left.pop(0), bands, "faults")
    for output in run.shown:
        _draw_delays(left.pop(0), run, output)
        _draw_rows(left.pop(0), run, output)
    _draw_bands(left.pop(0), _state_bands(result), "states")
    for panel in panels:
        _finish(panel, run)
    panels[-1].set_xlabel("virtual time since the start, seconds", fontsize=9)
    made.suptitle(title or f"simulated run, seed {run.seed}", fontsize=12, fontweight="bold")
    made.legend(handles=_legend(), loc="lower center", ncols=4, fontsize=8, frameon=False)
    return made


Bands = Mapping[str, list[tuple[float, float, str]]]
"""Bars of a band by the label of their line: from, to, colour; in seconds."""


def _s(run: Run[Any], time_us: int) -> float:
    return (time_us - run.start_us) / 1e6


def _fault_bands(run: Run[Any]) -> Bands:
    bands: dict[str, list[tuple[float, float, str]]] = {}
    for fault in run.faults:
        start, end = _span(run, fault)
        bands.setdefault(_label(fault), []).append((start, end, FAULT))
    return bands


def _span(run: Run[Any], fault: Fault) -> tuple[float, float]:
    """In seconds from the start; a skewed clock is skewed throughout."""
    if isinstance(fault, Skew):
        return 0.0, _s(run, run.stopped_us)
    start, end = fault.span_us
    return start / 1e6, end / 1e6


def _label(fault: Fault) -> str:
    kind = type(fault).__name__.lower()
    if isinstance(fault, Skew):
        return f"{kind} {fault.where} {'−' if fault.by_us < 0 else '+'}{readable(abs(fault.by_us))}"
    return f"{kind} {fault.where}" + (f" +{readable(fault.by_us)}" if isinstance(fault, Slow) else "")


def _state_bands(result: Result) -> Bands:
    run = result.run
    bands: dict[str, list[tuple[float, float, str]]] = {}
    states = [(time_us, f"{name}/{replica}", state) for time_us, name, replica, state in result.states().iter_rows()]
    for who in run.nodes:
        changes = [(_s(run, time_us), state) for time_us, name, state in states if name == who]
        ends = [*changes, (_s(run, run.stopped_us), "")]
        node = who.partition("/")[0]
        bands[node if run.layout.choices[node].replicas == 1 else who] = [
            (start, end, STATES[state]) for (start, state), (end, _) in pairwise(ends)
        ]
    return bands


def _draw_bands(panel: Axes, bands: Bands, title: str) -> None:
    for line, bars in enumerate(bands.values()):
        spans = [(start, end - start) for start, end, _ in bars]
        panel.broken_barh(spans, (line - 0.38, 0.76), facecolors=[colour for _, _, colour in bars])
    panel.set_yticks(range(len(bands)), list(bands))
    panel.set_ylim(len(bands) - 0.5, -0.5)
    panel.tick_params(axis="y", length=0)
    panel.set_title(title, loc="left", fontsize=9)


def _draw_delays(panel: Axes, run: Run[Any], output: str) -> None:
    """The delay of the oldest new row of every batch, and how long it may be."""
    kinds = {time_us: isinstance(show.item, Tentative) for time_us, show in run.shown[output] if _has_rows(show.item)}
    found = [(_s(run, new.time_us), max(new.delay_us, 0) / 1e6, kinds[new.time_us]) for new in new_rows(run, output)]
    for tentative, colour in ((False, STABLE), (True, TENTATIVE)):
        points = [(time, delay) for time, delay, kind in found if kind == tentative]
        times, delays = [time for time, _ in points], [delay for _, delay in points]
        panel.vlines(times, 0, delays, colors=colour, linewidth=1)
        panel.plot(times, delays, "o", color=colour, markersize=3.5, clip_on=False)
    allowed = allowance_us(run, output)
    panel.axhline(allowed / 1e6, color="#b22222", linestyle="--", linewidth=1.2)
    panel.annotate(
        f"allowed: {_why_allowed(run)} = {readable(allowed)}",
        (1.0, allowed / 1e6),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color="#b22222",
    )
    panel.set_ylim(0, 1.25 * max([allowed / 1e6, *(delay for _, delay, _ in found)]))
    panel.set_ylabel("seconds", fontsize=8)
    panel.set_title(f"{output}: delay of new rows when they reached the client", loc="left", fontsize=9)


def _why_allowed(run: Run[Any]) -> str:
    kinds = {type(fault) for fault in run.faults}
    return " + ".join(["kX", *(kind.__name__.lower() for kind in (Slow, Skew) if kind in kinds)])


def _draw_rows(panel: Axes, run: Run[Any], output: str) -> None:
    """What the client has: stable rows, and on top of them those that are tentative for now."""
    points = list(_held(run, output))
    times = [time for time, _, _ in points]
    stable = [rows for _, rows, _ in points]
    total = [rows + tentative for _, rows, tentative in points]
    panel.fill_between(times, 0, stable, step="post", color=STABLE, linewidth=0)
    panel.fill_between(times, stable, total, step="post", color=TENTATIVE, linewidth=0)
    panel.set_ylim(0, 1.08 * max([1, *total]))
    panel.yaxis.set_major_formatter("{x:,.0f}")
    panel.set_ylabel("rows", fontsize=8)
    panel.set_title(f"{output}: rows that the client has", loc="left", fontsize=9)
    if not total[-1]:
        panel.text(0.5, 0.5, "no rows", transform=panel.transAxes, ha="center", va="center", color=FAULT)


def _held(run: Run[Any], output: str) -> Iterator[tuple[float, int, int]]:
    """Time, stable rows and tentative rows, after each item."""
    stable = tentative = 0
    yield 0.0, 0, 0
    for time_us, show in run.shown[output]:
        match show.item:
            case Stable(rows):
                stable += run.layout.kernel.count(rows)
            case Tentative(rows):
                tentative += run.layout.kernel.count(rows)
            case Undo():
                tentative = 0
            case _:
                continue
        yield _s(run, time_us), stable, tentative
    yield _s(run, run.stopped_us), stable, tentative


def _has_rows(item: object) -> bool:
    return isinstance(item, Stable | Tentative)


def _finish(panel: Axes, run: Run[Any]) -> None:
    """What every panel has: shaded faults, limits, a quiet frame."""
    for fault in run.faults:
        if not isinstance(fault, Skew):
            panel.axvspan(*_span(run, fault), color=FAULT, alpha=0.13, linewidth=0, zorder=0)
    panel.set_xlim(0, max(_s(run, run.stopped_us), 0.1))
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Patch(color=STABLE, label="stable rows"),
        Patch(color=TENTATIVE, label="tentative rows"),
        Line2D([], [], color="#b22222", linestyle="--", label="longest delay allowed"),
        Patch(color=FAULT, alpha=0.35, label="fault"),
        *(Patch(color=colour, label=state) for state, colour in STATES.items()),
    ]
