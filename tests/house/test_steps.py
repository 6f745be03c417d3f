"""Every node has its operator, and every operator a transcript that runs it."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest
from tests.transcripts.test_transcripts import CONTENTS, PROGRAMS

import headwater.operators
from headwater.connectors.memory import MemorySink
from headwater.data.schema import Schema
from headwater.graph.nodes import Node
from headwater.operators import registry
from headwater.operators.stateless.pass_on import PassOperator
from headwater.plan.plan import JobPlan
from headwater.streams.environment import Environment

HANDLED_BY_TASKS = {"source", "sink"}
"""The ends of a job: they have no operator, tasks read and write for them."""
STATEFUL = {name.partition(" ")[0] for name in registry.STATEFUL}
"""The operations of steps that keep something, in whatever way they are computed."""


def kinds(cls: type[Node] = Node) -> Iterator[type[Node]]:
    """Every class of nodes that a graph can hold."""
    if cls.operation:
        yield cls
    for sub in cls.__subclasses__():
        yield from kinds(sub)


def operators() -> set[type]:
    """Every operator that there is, without those that are only there to be extended."""
    found: set[type] = set()
    for module in pkgutil.walk_packages(headwater.operators.__path__, "headwater.operators."):
        classes = inspect.getmembers(import_module(module.name), inspect.isclass)
        found |= {cls for name, cls in classes if name.endswith("Operator") and cls.__module__ == module.name}
    return {cls for cls in found if not cls.__subclasses__() and not getattr(cls, "_is_protocol", False)}


def plan_of(transcript: str) -> JobPlan:
    """The plan of a transcript's program."""
    schema = CONTENTS[transcript]["schema"]
    schemas = schema if isinstance(schema, dict) else {"only": schema}
    env = Environment("steps", engine="local")
    streams = (env.from_rows([], Schema.of(one), name=name) for name, one in schemas.items())
    for name, stream in PROGRAMS[CONTENTS[transcript]["program"]](*streams).items():
        stream.sink(MemorySink(), name=f"@{name}")
    return env.plan()


@pytest.fixture(scope="module")
def plans() -> list[JobPlan]:
    return [plan_of(transcript) for transcript in CONTENTS]


def test_every_node_has_an_operator_and_every_operation_a_node() -> None:
    named = [cls.operation for cls in kinds()]
    assert len(named) == len(set(named))
    assert set(named) - HANDLED_BY_TASKS == STATEFUL | set(registry.STATELESS)


def test_a_node_that_keeps_something_has_an_operator_that_does() -> None:
    assert {cls.operation for cls in kinds() if cls.is_stateful} == STATEFUL


def test_every_node_is_in_a_transcript(plans: list[JobPlan]) -> None:
    used = {node.operation for plan in plans for node in plan.graph}
    assert {cls.operation for cls in kinds()} - used == set()


def test_every_operator_is_in_a_transcript(plans: list[JobPlan]) -> None:
    run = {type(operator) for plan in plans for node in plan.graph for operator in operators_of(plan, node)}
    assert operators() - run == set()


def test_every_way_to_compute_a_step_is_in_a_transcript(plans: list[JobPlan]) -> None:
    stateful = [(node, plan.of(node)) for plan in plans for node in plan.graph if node.is_stateful]
    used = {f"{node.operation} {chosen.way}" if chosen.way else node.operation for node, chosen in stateful}
    assert used == set(registry.STATEFUL)


def operators_of(plan: JobPlan, node: Node) -> Iterator[object]:
    """What runs a node; before a stateless one that rows move to stands an operator that only passes them on."""
    graph, chosen = plan.graph, plan.of(node)
    if node.is_stateful:
        yield registry.operator_for(node, "step", graph.input_schemas(node), way=chosen.way)
    elif node.operation in registry.STATELESS:
        yield registry.stateless_operator(node, "step", graph.input_schema(node))
        if chosen.level is not None:
            yield PassOperator()
