"""Network: the query, as a graph of streams. It says nothing of where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import polars as pl

from evenflow.operators.errors import DeclarationError
from evenflow.operators.expressions import check_columns, check_row_by_row
from evenflow.operators.items import HEADER
from evenflow.operators.operator import HeadOperator, Operator, Schema
from evenflow.operators.union import Union
from evenflow.queries.compile import compile_plan
from evenflow.queries.durations import Duration, microseconds
from evenflow.queries.explain import explain, to_mermaid
from evenflow.queries.nodes import Node
from evenflow.queries.source import Source, declare_source
from evenflow.queries.stream import Stream


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SourceStream(Stream):
    """A stream that comes in from outside."""

    @property
    def source(self) -> Source:
        source = self.network.nodes[self.number].source
        if source is None:
            raise DeclarationError(f"{self.name!r} is not a source")
        return source


class Network:
    """A loop-free graph of streams: sources, operators over them, and named outputs.

    >>> import evenflow as ef
    >>> net = Network("sensors")
    >>> heat = net.source("heat", {"room": pl.String, "celsius": pl.Float64})
    >>> _ = heat.filter(pl.col("celsius") > 30).output("hot")
    >>> list(net.sources), list(net.outputs)
    (['heat'], ['hot'])
    """

    def __init__(self, name: str = "network") -> None:
        self.name = name
        self.nodes: list[Node] = []
        self._sources: dict[str, SourceStream] = {}
        self._outputs: dict[str, Stream] = {}

    def __repr__(self) -> str:
        return f"Network({self.name!r}: {len(self._sources)} sources, {len(self._outputs)} outputs)"

    @property
    def sources(self) -> Mapping[str, SourceStream]:
        return MappingProxyType(self._sources)

    @property
    def outputs(self) -> Mapping[str, Stream]:
        return MappingProxyType(self._outputs)

    def source(self, name: str, schema: Schema, time: str | None = None, slack: Duration = 0) -> SourceStream:
        """An input stream with these attributes.

        Rows are stamped by the source's clock; with ``time=`` they carry their time in a column (Int64
        microseconds or Datetime), out of order by at most ``slack``.
        """
        if name in self._sources:
            raise DeclarationError(f"source {name!r} is declared twice; a source has one schema")
        source = declare_source(name, schema, time, microseconds(slack, f"source {name!r}: slack", zero=True))
        self._check_name(name)
        self.nodes.append(Node(len(self.nodes), name, None, (), source.schema, source))
        stream = SourceStream(self, len(self.nodes) - 1)
        self._sources[name] = stream
        return stream

    def union(self, *streams: Stream, tie_break: str | pl.Expr | Sequence[str | pl.Expr] = ()) -> Stream:
        """Several streams of one schema as one, by ``tuple_time``; at equal times by the order of the arguments.

        ``tie_break`` columns or row-by-row expressions come before that order, and only ever between equal times.
        """
        if not streams:
            raise DeclarationError("union: name at least one stream")
        given = [tie_break] if isinstance(tie_break, str | pl.Expr) else list(tie_break)
        keys = [pl.col(key) if isinstance(key, str) else key for key in given]
        for key in keys if isinstance(streams[0], Stream) else []:
            check_columns("union tie_break", {"": key}, streams[0].schema)
            check_row_by_row("union tie_break", key)
        return self.add(Union(keys), streams)

    def add(self, operator: Operator[Any] | HeadOperator[Any], inputs: Sequence[Any]) -> Stream:
        """The stream that an operator makes of others."""
        for stream in inputs:
            if not isinstance(stream, Stream):
                hint = "; write net.union(*streams)" if isinstance(stream, list | tuple) else ""
                raise DeclarationError(f"{_kind(operator)}: {stream!r} is not a stream{hint}")
            if stream.network is not self:
                raise DeclarationError(
                    f"{_kind(operator)}: {stream.name!r} is a stream of the network {stream.network.name!r}, "
                    f"not of {self.name!r}; a network's operators read its own streams"
                )
        schema = dict(pl.Schema(dict(operator.schema(*(stream.schema for stream in inputs)))))
        reserved = next((name for name in schema if name in HEADER or name.startswith(":")), None)
        if reserved is not None:
            raise DeclarationError(f"{_kind(operator)}: {reserved!r} is reserved; call the column something else")
        number = len(self.nodes)
        label = f"{_kind(operator)}#{number}"
        self.nodes.append(Node(number, label, operator, tuple(stream.number for stream in inputs), schema, None))
        return Stream(self, number)

    def add_output(self, name: str, stream: Stream) -> None:
        if name in self._outputs:
            raise DeclarationError(f"output {name!r} is declared twice; give each output its own name")
        if not isinstance(name, str) or not name or "/" in name or not name.isprintable():
            raise DeclarationError(
                f"output: {name!r} is not a name; use letters, digits, spaces and punctuation but '/'"
            )
        self._outputs[name] = stream

    def rename(self, stream: Stream, name: str) -> None:
        self._check_name(name)
        node = self.nodes[stream.number]
        if node.source is not None:
            raise DeclarationError(f"named: {node.name!r} is a source and keeps its name")
        self.nodes[stream.number] = Node(node.number, name, node.operator, node.inputs, node.schema, None)

    def _check_name(self, name: str) -> None:
        if any(node.name == name for node in self.nodes):
            raise DeclarationError(f"there is a stream called {name!r} already; give each its own name")

    def check(self) -> None:
        """Raise if the network as a whole makes no sense: no output, or a source that nobody uses."""
        if not self._outputs:
            raise DeclarationError(f"network {self.name!r} has no output; end a stream with .output('name')")
        used = self.upstream([stream.number for stream in self._outputs.values()])
        for name, stream in self._sources.items():
            if stream.number not in used:
                raise DeclarationError(
                    f"source {name!r} is used by no output of network {self.name!r}; "
                    f"give a stream that reads it an output, or leave it out"
                )

    def upstream(self, streams: Sequence[int]) -> set[int]:
        """These streams and all that they depend on."""
        found: set[int] = set()
        todo = list(streams)
        while todo:
            number = todo.pop()
            if number not in found:
                found.add(number)
                todo += self.nodes[number].inputs
        return found

    def explain(self) -> str:
        """The compiled plan in words: fragments, operators, and the SUnions and SOutputs that were put in."""
        self.check()
        return explain(self.name, compile_plan(self.nodes, self.output_numbers))

    def to_mermaid(self) -> str:
        """The compiled plan as a Mermaid flow chart."""
        self.check()
        return to_mermaid(compile_plan(self.nodes, self.output_numbers))

    @property
    def output_numbers(self) -> Mapping[str, int]:
        return {name: stream.number for name, stream in self._outputs.items()}


def _kind(operator: Operator[Any] | HeadOperator[Any]) -> str:
    return repr(operator).split("(")[0].split(" ")[0].lower()
