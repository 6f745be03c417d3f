"""A user's program with other ends: its sources are scripts, its sinks keep their rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.connectors.contract import Changes, Sink
from headwater.connectors.memory import MemorySink
from headwater.graph.changelog import Changelog, together
from headwater.graph.nodes import Node, SinkNode, SourceNode
from headwater.streams.built import built
from headwater.streams.environment import Environment
from headwater.streams.overrides import Overrides, loading
from headwater.streams.stream import Stream
from headwater.testing.script_source import Script, ScriptSource
from headwater.testing.verification.failure import UnfitInput

Build = Callable[..., Any]
"""`build(env)`, or `build()` that gives an environment: as `headwater run` takes it. It may give streams to compare."""
Scripts = Mapping[str, Sequence[Script]]
"""The splits of each source, by uid."""

_RESULT = "result"


class Recorded(MemorySink):
    """Stands where a sink of the program would be, and takes changes as that one does."""

    def __init__(self, instead_of: Sink, carried: Changelog) -> None:
        super().__init__()
        self.changes, self.upsert_key = instead_of.changes, instead_of.upsert_key
        self.carried = carried

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which a row replaces another; none where rows are told whole."""
        return self.upsert_key if self.changes is Changes.APPLIED and self.upsert_key else self.carried.key


def program(build: Build, parallelism: int) -> Environment:
    """What the user's function builds, on the local engine. Streams that it returns have sinks."""
    named = getattr(build, "__name__", "build")
    with loading(named, Overrides(parallelism=parallelism, engine="local")):
        env, given = built(build, "verify")
    if not isinstance(env, Environment):
        raise UnfitInput.no_environment(named, env)
    returned = given if isinstance(given, Mapping) else {_RESULT: given}
    for name, stream in returned.items():
        is_end = isinstance(stream, Stream) and env.graph.node(stream._flow.origin).is_sink
        if hasattr(stream, "sink") and not is_end:
            stream.sink(MemorySink(), name=name)
    if not any(node.is_sink for node in env.graph):
        raise UnfitInput.no_output(named)
    return env


def with_other_ends(
    env: Environment, scripts: Scripts, sinks: Mapping[str, Recorded] | None = None
) -> dict[str, Recorded]:
    """Let the job read scripts and write to memory; gives the sinks by uid. Those of a run that it goes on from are its own."""
    graph = env.graph
    found: dict[str, Recorded] = {}

    def changed(node: Node) -> Node:
        uid = graph.uid(node)
        if isinstance(node, SourceNode):
            return dataclasses.replace(node, source=ScriptSource(*scripts[uid]))
        if isinstance(node, SinkNode):
            carried = together([graph.carried(edge) for edge in node.inputs])
            found[uid] = (sinks or {}).get(uid) or Recorded(node.sink, carried)
            return dataclasses.replace(node, sink=found[uid])
        return node

    env.graph = graph.with_nodes(changed)
    return found
