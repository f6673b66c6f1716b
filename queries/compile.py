"""From declared streams to a plan: cut at SUnions, which stand on every input of the node and in front of every
operator with several inputs; what follows one SUnion up to the next is a fragment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from evenflow.operators.fragment import FROM_SUNION, Fragment, Stage
from evenflow.operators.operator import HeadOperator
from evenflow.operators.plan import Plan
from evenflow.operators.union import Union
from evenflow.queries.nodes import Node


@dataclass(slots=True)
class _Draft:
    inputs: tuple[int, ...]
    stages: list[Stage] = field(default_factory=list)


def compile_plan(nodes: Sequence[Node], outputs: Mapping[str, int], placed: Collection[int] | None = None) -> Plan:
    """The plan of the node that runs the ``placed`` operators (None: all of them) and sends these outputs."""
    here = _needed(nodes, outputs.values(), placed)
    drafts: list[_Draft] = []
    home: dict[int, _Draft] = {}
    for number in sorted(here):
        node = nodes[number]
        if node.operator is None or (placed is not None and number not in placed):
            continue
        if isinstance(node.operator, HeadOperator):
            draft, reads = _Draft(node.inputs), FROM_SUNION
            drafts.append(draft)
        else:
            reads = node.inputs[0]
            draft = home.get(reads) or _serialised(reads, drafts, home)
        own = type(node.operator).__module__.startswith("evenflow.")
        draft.stages.append(Stage(number, node.operator, reads, None if own else node.schema))
        home[number] = draft
    for number in outputs.values():
        if number not in home:
            _serialised(number, drafts, home)
    return _plan(nodes, outputs, drafts)


def _needed(nodes: Sequence[Node], outputs: Collection[int], placed: Collection[int] | None) -> set[int]:
    """The streams that the outputs depend on, back to the node's own inputs."""
    found: set[int] = set()
    todo = list(outputs)
    while todo:
        number = todo.pop()
        if number in found:
            continue
        found.add(number)
        if placed is None or number in placed:
            todo += nodes[number].inputs
    return found


def _serialised(number: int, drafts: list[_Draft], home: dict[int, _Draft]) -> _Draft:
    """A fragment that begins with an SUnion over a single input of the node."""
    draft = _Draft((number,), [Stage(number, Union(), FROM_SUNION)])
    drafts.append(draft)
    home[number] = draft
    return draft


def _plan(nodes: Sequence[Node], outputs: Mapping[str, int], drafts: Sequence[_Draft]) -> Plan:
    made = {stage.stream for draft in drafts for stage in draft.stages if (stage.stream,) != draft.inputs}
    read = {number for draft in drafts for number in draft.inputs}
    inputs = sorted(read - made)
    fragments = []
    for draft in drafts:
        streams = [stage.stream for stage in draft.stages]
        wanted = outputs.values()
        leaves = [s for s in streams if s in wanted or (s in read and (s,) != draft.inputs)]
        fragments.append(Fragment(draft.inputs, tuple(draft.stages), tuple(leaves)))
    known = {*inputs, *made}
    return Plan(
        {number: nodes[number].name for number in known},
        {number: nodes[number].schema for number in known},
        tuple(inputs),
        tuple(_in_order(fragments, inputs)),
        outputs,
    )


def _in_order(fragments: Sequence[Fragment], inputs: Sequence[int]) -> list[Fragment]:
    """Fragments so that each follows those it reads."""
    ready, rest, done = list[Fragment](), list(fragments), set(inputs)
    while rest:
        now = [fragment for fragment in rest if done.issuperset(fragment.inputs)]
        ready += now
        for fragment in now:
            rest.remove(fragment)
            done.update(fragment.leaves)
    return ready
