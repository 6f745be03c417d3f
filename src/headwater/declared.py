"""The states that a function declares, found on its class before it runs."""

from __future__ import annotations

import copy
from typing import Any

from headwater.descriptors import OperatorListState, StateDeclaration
from headwater.errors import GraphError, StateError


def keyed_states(function: object, step: str) -> list[StateDeclaration]:
    """The declarations of a function whose state is per key; it has no operator state."""
    states = declared_states(function, step)
    for state in states:
        if isinstance(state, OperatorListState):
            raise GraphError.bad_argument(
                step,
                "has operator state, which only a hw.ProcessFunction can have",
                state.name,
                "declare a hw.ListState, or use a hw.ProcessFunction",
            )
    return states


def operator_states(function: object, step: str) -> list[OperatorListState[Any]]:
    """The declarations of a function that has no key; it has operator state only."""
    found = []
    for state in declared_states(function, step):
        if not isinstance(state, OperatorListState):
            raise GraphError.bad_argument(
                step,
                "has no key, so it cannot have keyed state",
                state.name,
                "use a hw.KeyedProcessFunction behind .key_by(...), or declare a hw.OperatorListState",
            )
        if state.ttl is not None:
            raise GraphError.bad_argument(
                step,
                "has operator state, which belongs to no key and cannot expire",
                f"{state.name} with a ttl",
                "remove elements in the function, or keep them per key",
            )
        found.append(state)
    return found


def declared_states(function: object, step: str) -> list[StateDeclaration]:
    """The declarations of a function's class, base classes first, in the order of the source text."""
    found: dict[str, tuple[str, StateDeclaration]] = {}
    for cls in reversed(type(function).__mro__):
        for attribute, value in vars(cls).items():
            if isinstance(value, StateDeclaration):
                other = found.get(value.name)
                if other is not None and other[0] != attribute:
                    raise StateError.declared_twice(step, value.name)
                found[value.name] = (attribute, value)
    return [_under_attribute(attribute, declaration) for attribute, declaration in found.values()]


def _under_attribute(attribute: str, declaration: StateDeclaration) -> StateDeclaration:
    bound = copy.copy(declaration)
    bound.attribute = attribute
    return bound
