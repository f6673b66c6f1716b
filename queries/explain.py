"""A compiled plan for people: in words, and as a picture."""

from __future__ import annotations

from evenflow.operators.fragment import Fragment, Stage
from evenflow.operators.plan import Plan
from evenflow.operators.times import readable
from evenflow.operators.union import Union


def explain(title: str, plan: Plan) -> str:
    lines = [f"network {title}", "inputs"]
    for stream in plan.inputs:
        columns = ", ".join(f"{name}: {dtype}" for name, dtype in plan.schemas[stream].items())
        lines.append(f"  {plan.names[stream]}  ({columns})")
    for number, fragment in enumerate(plan.fragments, start=1):
        lines += [f"fragment {number}{_traits(fragment)}", f"  SUnion({_named(plan, fragment.inputs)})"]
        lines += [f"    {_stage(plan, stage)}" for stage in fragment.stages if not _only_serialises(fragment, stage)]
        lines += [f"    SOutput {name!r}" for name, stream in plan.outputs.items() if stream in fragment.leaves]
    return "\n".join(lines)


def _traits(fragment: Fragment) -> str:
    horizon = fragment.horizon
    kept = "state: none" if horizon == 0 else f"state: last {readable(horizon)}" if horizon else "state: for ever"
    return f"  ({kept}{', blocks without an input' if fragment.blocking else ''})"


def _named(plan: Plan, streams: tuple[int, ...]) -> str:
    return ", ".join(plan.names[stream] for stream in streams)


def _stage(plan: Plan, stage: Stage) -> str:
    columns = ", ".join(f"{name}: {dtype}" for name, dtype in plan.schemas[stage.stream].items())
    text = repr(stage.operator)
    kind = text.split("(")[0].split(" ")[0]
    name = plan.names[stage.stream]
    label = "" if name.startswith(f"{kind}#") else f"{name} = "
    return f"{label}{text} → ({columns})"


def _only_serialises(fragment: Fragment, stage: Stage) -> bool:
    """Whether a stage is only the SUnion's own order over one input."""
    return isinstance(stage.operator, Union) and fragment.inputs == (stage.stream,)


def to_mermaid(plan: Plan) -> str:
    lines = ["flowchart LR"]
    lines += [f'  s{stream}(["{_safe(plan.names[stream])}"])' for stream in plan.inputs]
    made_by: dict[int, str] = {stream: f"s{stream}" for stream in plan.inputs}
    for number, fragment in enumerate(plan.fragments, start=1):
        lines.append(f'  subgraph f{number}["fragment {number}"]')
        lines.append(f'    u{number}{{{{"SUnion"}}}}')
        before: dict[int, str] = {}
        links: list[str] = []
        for stage in fragment.stages:
            if _only_serialises(fragment, stage):
                before[stage.stream] = f"u{number}"
                continue
            box = f"o{stage.stream}"
            lines.append(f'    {box}["{_safe(repr(stage.operator))}"]')
            links.append(f"  {before.get(stage.reads, f'u{number}')} --> {box}")
            before[stage.stream] = box
        outputs = [(name, stream) for name, stream in plan.outputs.items() if stream in fragment.leaves]
        for place, (name, stream) in enumerate(outputs):
            lines.append(f'    t{number}_{place}{{{{"SOutput {_safe(name)}"}}}}')
            links.append(f"  {before[stream]} --> t{number}_{place}")
        lines.append("  end")
        lines += [f"  {made_by[stream]} --> u{number}" for stream in fragment.inputs] + links
        made_by |= {stream: before[stream] for stream in fragment.leaves if (stream,) != fragment.inputs}
    return "\n".join(lines)


def _safe(text: str) -> str:
    return text.replace('"', "'").replace("#", "#35;")
