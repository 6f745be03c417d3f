"""The window operator: element by element as Flink does it, for any assigner, trigger, evictor and function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from headwater.data.batch import MAX_TIMESTAMP, Batch, Timestamps, timestamp_list
from headwater.data.rows import Row
from headwater.errors import HeadwaterError, RowError
from headwater.functions import EVENT, Pane, ProcessWindowFunction, WindowContext
from headwater.graph.nodes import WindowNode
from headwater.graph.nodes.windows import BY_BURSTS, BY_ELEMENT, BY_RUNS
from headwater.late_rows import LateRow
from headwater.measures import Measured, Metrics
from headwater.operators.contract import Emit, StepTime
from headwater.operators.keys import key_spread, keys_of
from headwater.operators.stateless.functions import SideRow, rows_of, side_batches
from headwater.operators.timers import KeepsTimers, StepTimers
from headwater.operators.user_code import open_function, own_copy, user_code_failed
from headwater.operators.window.assignment import Assigned, Assignment
from headwater.operators.window.bursts import Burst, Bursts
from headwater.operators.window.contents import TAKEN_BACK, AggregateContents, Contents, contents_of
from headwater.operators.window.late import LateRows, late_rows
from headwater.operators.window.panes import Cleared, Event, Fired, Firing, Merged, PaneBook
from headwater.operators.window.pieces import Cut
from headwater.operators.window.reach import assigned_by, check_reach, reach_of
from headwater.operators.window.scope import Scope, scope_of, scope_spread, scope_type
from headwater.operators.window.sessions import Sessions, sessions_declaration
from headwater.operators.window.triggering import TriggerHost
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.timers import TimerKey
from headwater.windows.assigners import Window
from headwater.windows.triggers import Firings, TriggerResult
from headwater.words import TimeDomain

_SLICE_ROWS = 65_536


class WindowOperator(KeepsTimers):
    """Runs one window step on one subtask: by runs or by bursts of rows where it is told so, else element by element."""

    needs_order = True

    def __init__(
        self, node: WindowNode, step: str, row: type[Row], *, way: str = BY_ELEMENT, backend: StateBackend = MEMORY
    ) -> None:
        self._node, self._step, self._row = node, step, row
        self._assigner = node.assigner
        self._assign = assigned_by(node.assigner, step)
        self._is_event_time = node.assigner.domain == EVENT
        scope = scope_type(node.key.type)
        self._timers = StepTimers(step, scope, Cursor(), scope_spread(node.key), backend=backend)
        self._trigger = TriggerHost(node, step, scope, self._timers, backend)
        self._contents: Contents = contents_of(node, step)
        self._assignment = Assignment(node, step) if way == BY_RUNS else None
        self._bursts = Bursts(node, step, row) if way == BY_BURSTS else None
        self._book = PaneBook(node, step)
        self._late = late_rows(node, step)
        self._open_states(scope, backend)
        self._context = WindowContext()
        self._context.timers = self._timers
        self._metrics = self._context.metrics = Metrics()
        self._events: list[Event] = []
        self._side: list[SideRow] = []
        if isinstance(self._contents, AggregateContents):
            self._contents.at(lambda: self._cursor.key)

    def _open_states(self, scope: Any, backend: StateBackend) -> None:
        node, step = self._node, self._step
        self._cursor, self._key_cursor = Cursor(), Cursor()
        self._function: ProcessWindowFunction | None = own_copy(node.process, step)
        own = [*self._contents.declarations(), *self._book.declarations()]
        per_window = [s for s in node.states if s.is_per_window]
        per_key = [s for s in node.states if not s.is_per_window]
        sessions = [sessions_declaration()] if self._assigner.merges else []
        by_window, by_key = scope_spread(node.key), key_spread(node.key)
        self._entries, windows = open_states([*own, *per_window], step, scope, self._cursor, by_window, backend=backend)
        self._key_entries, keys = open_states(
            [*per_key, *sessions], step, node.key.type, self._key_cursor, by_key, backend=backend
        )
        for declaration in self._contents.declarations():
            setattr(self._contents, declaration.attribute, windows[declaration.name])
        for declaration in self._book.declarations():
            setattr(self._book, declaration.attribute, windows[declaration.name])
        for declaration in node.states:
            setattr(self._function, declaration.attribute, {**windows, **keys}[declaration.name])
        self._per_window: list[Any] = [windows[s.name] for s in per_window]
        self._sessions = Sessions(keys["@sessions"], self._key_cursor) if sessions else None
        if self._sessions is not None:
            keys["@sessions"] = self._sessions
        self._keep({**windows, **keys, **self._trigger.tables})
        self._is_open = self._function is None

    # -- rows -------------------------------------------------------------------------------------------------------

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        for start in range(0, len(batch), _SLICE_ROWS):
            self._process_slice(batch.slice(start, _SLICE_ROWS), time, emit)

    def _process_slice(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._begin(time)
        if self._assignment is not None:
            self._process_runs(self._assignment.of(batch, time), batch, time)
            self._finish(emit)
            return
        if self._bursts is not None:
            batch = self._process_bursts(self._bursts, batch, time)
        elif self._is_event_time and self._assigner.is_bounded:
            check_reach(batch, reach_of(self._assigner), self._step)
        self._contents.begin(batch.table)
        rows = rows_of(batch.table, self._row)
        keys = list(keys_of(batch, self._node.key))
        self._key_entries.fetch(keys)
        for place, (key, timestamp, row) in enumerate(zip(keys, timestamp_list(batch.timestamps), rows, strict=True)):
            try:
                self._element(key, timestamp, row, place)
            except HeadwaterError:
                raise
            except BaseException as error:
                raise user_code_failed(error, self._step, key, timestamp) from None
        self._finish(emit)

    def _process_runs(self, assigned: Assigned, batch: Batch, time: StepTime) -> None:
        """Take in rows by key and window: the trigger is asked once for each of these, and says where they are cut."""
        assert isinstance(self._contents, AggregateContents)
        assert isinstance(self._late, LateRows)
        runs, scopes = assigned.runs, assigned.scopes
        timestamps = batch.timestamps[runs.rows]
        fires, drops = np.zeros((2, len(runs.rows)), np.bool_)
        kinds = []
        self._entries.fetch(scopes)
        self._trigger.fetch(scopes)
        for scope, begin, end in zip(scopes, runs.bounds.tolist(), runs.bounds[1:].tolist(), strict=False):
            window = Window(*scope[1:])
            self._point(scope[0], window, window)
            places, purges = self._on_rows(timestamps[begin:end], scope[0])
            fires[begin + places], drops[begin + places] = True, purges
            kinds.append(self._kind(window))
            self._keep_until_cleanup(window)
        if scopes:
            cut = Cut(fires, fires if self._node.panes.mode == "discarding" else drops)
            places = runs.arrived(np.flatnonzero(fires))
            results = self._contents.add_runs(batch, runs, cut, scopes, self._point_at)
            self._book.fire(Fired(batch, runs.rows[places], runs.of[places], results, scopes, kinds), self._point_at)
        self._late.add_batch(batch.take(assigned.nowhere), assigned.missed, time.watermark_ms)

    def _process_bursts(self, bursts: Bursts, batch: Batch, time: StepTime) -> Batch:
        """Take in the rows that can go by bursts; gives the others."""
        assert isinstance(self._contents, AggregateContents)
        assert isinstance(self._late, LateRows)
        self._key_entries.fetch(self._keys(batch))
        taken = bursts.of(batch, time, self._touching)
        for table in (self._entries, self._trigger):
            table.fetch(scope_of(burst.key, burst.window) for burst in taken.bursts)
        self._late.add_batch(batch.take(taken.late), taken.missed, time.watermark_ms)
        for burst in taken.bursts:
            self._key_cursor.entry = self._key_entries.entry(burst.key)
            add = partial(self._contents.add_accumulators, burst.accumulators)
            self._into(burst.key, burst.window, add, burst=burst)
        return batch.take(taken.singles)

    def _keys(self, batch: Batch) -> Iterator[Any]:
        """The keys of rows, for those who need them."""
        yield from keys_of(batch, self._node.key)

    def _on_burst(self, burst: Burst) -> TriggerResult:
        """Ask a trigger to which the number of rows makes no difference."""
        places, purges = self._on_rows(np.array([burst.window.start]), burst.key)
        if not len(places):
            return TriggerResult.CONTINUE
        return TriggerResult.FIRE_AND_PURGE if purges[0] else TriggerResult.FIRE

    def _on_rows(self, timestamps: Timestamps, key: Any) -> Firings:
        context = self._trigger.context
        context.timestamp = None
        try:
            return self._trigger.trigger.on_rows(timestamps, context)
        except HeadwaterError:
            raise
        except BaseException as error:
            raise user_code_failed(error, self._step, key) from None

    def _touching(self, key: Any, window: Window) -> list[Window]:
        assert self._sessions is not None
        self._key_cursor.entry = self._key_entries.entry(key)
        return self._sessions.touching(window)

    def _element(self, key: Any, timestamp: int | None, row: Any, place: int) -> None:
        self._key_cursor.entry = self._key_entries.entry(key)
        context = self._trigger.context
        context.timestamp = timestamp
        moment = timestamp if self._is_event_time and self._assigner.is_bounded else context.now
        if moment is None:
            raise RowError.no_event_time(self._step)
        missed: Window | None = None
        is_in = False
        add = partial(self._contents.add, row, timestamp, place)
        for assigned in self._assign(row, moment):
            gone = self._into(key, assigned, add, row)
            missed, is_in = gone or missed, is_in or gone is None
        if not is_in and timestamp is not None and self._is_event_time:
            self._late.add(key, row, timestamp, missed, context.watermark)

    def _into(
        self, key: Any, assigned: Window, add: Callable[[], None], row: Any = None, *, burst: Burst | None = None
    ) -> Window | None:
        """Put a row or a burst into a window and ask the trigger; gives the window when it is gone already."""
        window, state = assigned, assigned
        if self._sessions is not None:
            window = self._sessions.add(assigned, partial(self._merge, key))
            state = self._sessions.state_window(window) or window
        if self._is_late(window):
            if self._sessions is not None:
                self._sessions.remove(window)
            return window
        scope = self._point(key, window, state)
        add()
        trigger = self._trigger
        result = trigger.trigger.on_element(row, trigger.context) if burst is None else self._on_burst(burst)
        self._act(result, key, window, scope, self._kind(window))
        self._keep_until_cleanup(window)
        return None

    def _point(self, key: Any, window: Window, state: Window) -> Scope:
        """Make a window the current one for content and trigger alike."""
        scope = scope_of(key, state)
        self._trigger.point(scope if state == window else scope_of(key, window), window)
        self._cursor.entry = self._entries.entry(scope)
        return scope

    def _point_at(self, scope: Scope) -> None:
        self._cursor.entry = self._entries.entry(scope)

    def _merge(self, key: Any, merged: Window, parts: list[Window], kept: Window, absorbed: list[Window]) -> None:
        for part in parts:
            self._timers.point(scope_of(key, part))
            self._delete_cleanup(part)
        self._trigger.merge(scope_of(key, merged), merged, [(scope_of(key, part), part) for part in parts])
        target, others = scope_of(key, kept), [scope_of(key, window) for window in absorbed]
        if others:
            self._contents.absorb(others, target, self._point_at)
            self._note(Merged(target, others))

    # -- time -------------------------------------------------------------------------------------------------------

    def _on_timers(self, domain: TimeDomain, due: Iterable[TimerKey], time: StepTime, emit: Emit) -> None:
        self._begin(time)
        for timestamp, scope in due:
            self._on_timer(timestamp, scope, domain)
        self._finish(emit)

    def _on_timer(self, timestamp: int, scope: Scope, domain: str) -> None:
        key, window = scope[0], Window(scope[1], scope[2])
        self._key_cursor.entry = self._key_entries.entry(key)
        state: Window | None = window
        if self._sessions is not None and (state := self._sessions.state_window(window)) is None:
            return  # a window that has merged into another since
        assert state is not None
        place = self._point(key, window, state)
        trigger, context = self._trigger.trigger, self._trigger.context
        context.timestamp = None
        try:
            is_own = domain == self._assigner.domain
            ask = trigger.on_event_time if domain == EVENT else trigger.on_processing_time
            reached = timestamp if is_own else None
            self._act(ask(timestamp, context), key, window, place, self._kind(window, reached))
            gone_at = self._cleanup_time(window)  # not when it was put in, if it was saved with another lateness
            if is_own and timestamp >= gone_at:
                self._clear(key, window, place)
            elif gone_at > (timestamp if is_own else self._reached()):
                self._keep_until_cleanup(window)  # a trigger may have deleted timers, and this one with them
        except HeadwaterError:
            raise
        except BaseException as error:
            raise user_code_failed(error, self._step, key, timestamp) from None

    # -- firing -----------------------------------------------------------------------------------------------------

    def _act(self, result: TriggerResult, key: Any, window: Window, scope: Scope, kind: str) -> None:
        if TriggerResult.FIRE in result:
            self._fire(key, window, scope, kind)
            if self._node.panes.mode == "discarding":
                result |= TriggerResult.PURGE
        if TriggerResult.PURGE in result:
            self._contents.clear()

    def _fire(self, key: Any, window: Window, scope: Scope, kind: str) -> None:
        held = self._contents.take()
        if held is None and not (self._node.panes.has_empty and kind == "on_time"):
            return
        firing = Firing(key, window, scope, kind, held)
        if self._function is not None:
            (value,) = self._contents.compute([held])
            elements = value if self._contents.gives_rows else [self._folded_row(value)]
            self._set_context(window)
            self._context.pane = Pane(kind, self._book.index.get())
            firing.rows = list(self._function.process(elements, self._context) or ())
        self._note(firing)

    def _note(self, event: Event) -> None:
        """Tell the book: at once where a function is told the number of a firing, else when all is computed."""
        if self._function is not None:
            self._book.write(event, self._point_at)
        else:
            self._events.append(event)

    def _folded_row(self, value: Any) -> Any:
        assert self._node.folded is not None
        names = self._node.folded.names
        return self._node.folded.row(*([value[name] for name in names] if isinstance(value, dict) else value))

    def _kind(self, window: Window, timer: int | None = None) -> str:
        """What a firing is: by a timer of the windows' own time, or by a row or a timer of the other time."""
        if timer is not None:
            return "early" if timer < window.last else "on_time" if timer == window.last else "late"
        return "late" if window.last <= self._reached() else "early"

    def _reached(self) -> int:
        """Where the time of the windows stands."""
        return self._trigger.context.watermark if self._is_event_time else self._trigger.context.now

    def _set_context(self, window: Window) -> None:
        context, trigger = self._context, self._trigger.context
        context.key, context.window, context.timestamp = trigger.key, window, window.last
        context.watermark, context.now = trigger.watermark, trigger.now

    def _clear(self, key: Any, window: Window, scope: Scope) -> None:
        if self._function is not None:
            self._set_context(window)
            self._function.clear(self._context)
        self._contents.clear()
        self._trigger.clear()
        for state in self._per_window:
            state.clear()
        if self._sessions is not None:
            self._sessions.remove(window)
        self._note(Cleared(scope))

    def _begin(self, time: StepTime) -> None:
        if self._function is not None and not self._is_open:
            open_function(self._function, self._step)
            self._is_open = True
        context = self._trigger.context
        context.watermark, context.now = time.watermark_ms, time.now_ms
        self._events, self._side = [], []
        self._context._side = self._side  # type: ignore[attr-defined]

    def _finish(self, emit: Emit) -> None:
        """Compute what fired, all at once, and store what is held."""
        open_firings = [e for e in self._events if isinstance(e, Firing) and e.rows is None]
        values = iter(self._contents.compute([firing.held for firing in open_firings]))
        for firing in open_firings:
            value = self._value_of(firing, values)
            firing.rows = [] if value is TAKEN_BACK else [value]
        if isinstance(self._contents, AggregateContents):
            self._entries.fetch(self._contents.pending)
        self._contents.finish(self._point_at)
        for event in self._events:
            self._book.write(event, self._point_at)
        batch = self._book.take()
        if batch is not None:
            emit(None, batch)
        for tag, side in side_batches(self._side, self._node.outputs, self._step):
            emit(tag, side)
        for tag, late in self._late.take():
            emit(tag, late)

    def _value_of(self, firing: Firing, values: Iterator[Any]) -> Any:
        try:
            return next(values)
        except HeadwaterError:
            raise
        except BaseException as error:
            raise user_code_failed(error, self._step, firing.key, firing.window.last) from None

    # -- the end of windows -----------------------------------------------------------------------------------------

    def _cleanup_time(self, window: Window) -> int:
        lateness_ms = self._node.lateness_ms if self._is_event_time else 0
        return min(window.last + lateness_ms, MAX_TIMESTAMP)

    def _is_late(self, window: Window) -> bool:
        return self._is_event_time and self._cleanup_time(window) <= self._trigger.context.watermark

    def _keep_until_cleanup(self, window: Window) -> None:
        at = self._cleanup_time(window)
        if at < MAX_TIMESTAMP:
            (self._timers.event_time if self._is_event_time else self._timers.processing_time)(at)

    def _delete_cleanup(self, window: Window) -> None:
        timers = self._timers
        (timers.delete_event_time if self._is_event_time else timers.delete_processing_time)(self._cleanup_time(window))

    # -- counts -----------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        return {"late_dropped": self._late.take_dropped()}

    def late_rows(self) -> tuple[LateRow, ...]:
        return self._late.take_newest()

    def measured(self) -> dict[str, Measured]:
        return self._metrics.take()
