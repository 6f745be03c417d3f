"""The trigger of a step with its state: opened per window, combined when windows merge."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headwater.descriptors import StateDeclaration
from headwater.graph.nodes import WindowNode
from headwater.operators.timers import StepTimers
from headwater.operators.user_code import own_copy
from headwater.operators.window.scope import Scope, scope_spread
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor, KeyTable
from headwater.windows.assigners import Window
from headwater.windows.errors import WindowError
from headwater.windows.triggers import Trigger, TriggerContext, TriggerResult


class TriggerHost:
    """A trigger on one subtask."""

    def __init__(self, node: WindowNode, step: str, scope_type: Any, timers: StepTimers, backend: StateBackend) -> None:
        self.trigger = own_copy(node.trigger, step)
        for part in () if self.trigger.looks_at_parts else with_parts(self.trigger):
            if not type(part).__module__.startswith("headwater."):
                _look_at(part, step)
        self._timers = timers
        self._cursor = Cursor()
        declarations: list[StateDeclaration] = []
        owners: list[tuple[Trigger, str, str]] = []
        for number, part in enumerate(with_parts(self.trigger)):
            for declaration in part.states(node.input_schema, step):
                renamed = copy.copy(declaration)
                renamed.name = f"@trigger.{number}.{declaration.name}"
                declarations.append(renamed)
                owners.append((part, declaration.attribute, renamed.name))
        self._entries: KeyTable
        spread = scope_spread(node.key)
        self._entries, self.tables = open_states(declarations, step, scope_type, self._cursor, spread, backend=backend)
        self._handles: list[Any] = [self.tables[name] for _, _, name in owners]
        for part, attribute, name in owners:
            setattr(part, attribute, self.tables[name])
        self.context = TriggerContext()
        self.context.timers = timers

    def fetch(self, scopes: Iterable[Scope]) -> None:
        """Have the states of windows at hand that are asked for next."""
        self._entries.fetch(scopes)

    def point(self, scope: Scope, window: Window) -> None:
        """Make a window the one that the trigger decides on."""
        self._cursor.entry = self._entries.entry(scope)
        self._timers.point(scope)
        self.context.key, self.context.window = scope[0], window

    def merge(self, merged: Scope, window: Window, parts: list[tuple[Scope, Window]]) -> None:
        """Combine the states of windows that became one, and set its timers; the old ones' timers go."""
        found: list[list[Any]] = [[] for _ in self._handles]
        for scope, old in parts:
            self.point(scope, old)
            for values, handle in zip(found, self._handles, strict=True):
                if (value := handle.get()) is not None:
                    values.append(value)
        for scope, old in parts:
            self.point(scope, old)
            self.clear()
        self.point(merged, window)
        for values, handle in zip(found, self._handles, strict=True):
            for value in values:
                handle.add(value)
        self.trigger.rearm(self.context)

    def clear(self) -> None:
        """The current window is gone."""
        self.trigger.clear(self.context)
        for handle in self._handles:
            handle.clear()


def _look_at(trigger: Trigger, step: str) -> None:
    """Let a user's trigger fail where it gives something else than what becomes of the window."""

    def looked_at(method: str, decide: Callable[..., Any]) -> Callable[..., TriggerResult]:
        def decided(about: Any, ctx: TriggerContext) -> TriggerResult:
            result = decide(about, ctx)
            if not isinstance(result, TriggerResult):
                raise WindowError.not_a_trigger_result(step, f"{type(trigger).__name__}.{method}", result)
            return result

        return decided

    for method in ("on_element", "on_event_time", "on_processing_time"):
        setattr(trigger, method, looked_at(method, getattr(trigger, method)))


def with_parts(trigger: Trigger) -> Iterator[Trigger]:
    """A trigger and all that it is made of, in the order in which their states are numbered."""
    yield trigger
    for part in trigger.parts():
        yield from with_parts(part)
