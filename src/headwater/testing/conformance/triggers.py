"""What every trigger must do: its words do not depend on how rows and time come, or on what it was not told to keep."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from headwater.data.batch import MAX_TIMESTAMP
from headwater.data.schema import Schema, SchemaLike
from headwater.descriptors import ReducingState
from headwater.durations import Duration, duration_ms
from headwater.functions import EVENT, PROCESSING
from headwater.testing.conformance.rows import Came, Rows
from headwater.testing.conformance.trigger_life import Action, Moved, Script, Steps, TriggerLife, Word
from headwater.testing.conformance.verdict import NotConforming, require
from headwater.windows.assigners import Window, WindowAssigner, global_window, processing_time, session, tumbling
from headwater.windows.triggers import Trigger, TriggerResult

_AT_ONCE = (2, 5, 1_000)
_KEYS = "ab"
_MOST_ACTIONS, _MOST_ROWS = 8, 8


def check_trigger(
    trigger: Trigger,
    schema: SchemaLike,
    rows: Sequence[Any],
    *,
    size: Duration = "1 min",
    runs: int = 10,
    seed: int = 0,
) -> None:
    """Check a trigger with `runs` random sequences of rows and times, the same for the same `seed`.

    `rows`, of the schema, are those that the sequences draw from. Windows are tumbling ones of the `size`, global ones,
    and, if the trigger can merge, sessions; choose a size, and rows, that make it fire. Raises `NotConforming` at the first
    rule it breaks, with a short sequence that shows it.
    """
    size_ms = duration_ms(size, what="the size of windows to check a trigger with")
    drawn = Rows(Schema.of(schema), rows)
    if size_ms < _MOST_ROWS or not len(drawn):
        raise ValueError(f"give rows, and windows of at least {_MOST_ROWS} ms, to check a trigger with")
    has_fired = False
    for windows in _windows(trigger, size_ms):
        check = _Check(Steps(trigger, windows, size_ms // 2, drawn.schema), drawn)
        for run in range(runs):
            chance = random.Random(f"{seed} {run}")  # noqa: S311  not for secrets
            has_fired |= check.run(list(_script(chance, len(drawn), size_ms)), _end(size_ms))
    if trigger.can_merge:
        _check_growth(trigger, drawn, size_ms)
    rule = "it fires, unless it says can_fire = False; choose rows and a size of windows that make it"
    require(trigger, rule, f"in {runs} runs it never did", holds=has_fired or not trigger.can_fire)


def _windows(trigger: Trigger, size_ms: int) -> Iterator[WindowAssigner]:
    yield tumbling(f"{size_ms} ms")
    yield processing_time(tumbling(f"{size_ms} ms"))
    yield global_window()
    if trigger.can_merge:
        yield session(f"{size_ms // 4} ms")
        yield processing_time(session(f"{size_ms // 4} ms"))


def _script(chance: random.Random, rows: int, size_ms: int) -> Iterator[Action]:
    """Some rows and moves of time around the first windows."""
    for _ in range(chance.randint(2, _MOST_ACTIONS)):
        what = chance.random()
        if what < 0.25:
            yield Moved(EVENT, chance.randrange(-size_ms, 3 * size_ms))
        elif what < 0.4:
            yield Moved(PROCESSING, chance.randrange(3 * size_ms))
        else:
            yield tuple(
                Came(chance.choice(_KEYS), chance.randrange(rows), chance.randrange(-size_ms, 2 * size_ms))
                for _ in range(chance.randint(1, _MOST_ROWS))
            )


def _end(size_ms: int) -> list[Action]:
    """Both times move behind all windows, so that neither has anything to come from the other."""
    return [Moved(EVENT, MAX_TIMESTAMP), Moved(PROCESSING, 8 * size_ms)] * 2


class _Check:
    """The rules, for windows of one kind."""

    def __init__(self, steps: Steps, rows: Rows) -> None:
        self._steps, self._rows, self._trigger = steps, rows, steps.trigger

    def run(self, script: list[Action], end: list[Action]) -> bool:
        """Check one sequence and the end after it; whether the trigger fired in it."""
        try:
            words = self._check([*script, *end])
        except NotConforming as breach:
            raise self._shortest(breach, script, end) from None
        return any(TriggerResult.FIRE in word.result for word in words)

    def _shortest(self, breach: NotConforming, script: list[Action], end: list[Action]) -> NotConforming:
        """The breach of the same rule by as few actions and rows as can be found."""
        at = 0
        while at < len(script):
            for shorter in _without_one(script, at):
                try:
                    self._check([*shorter, *end])
                except NotConforming as other:
                    if other.rule == breach.rule:
                        breach, script = other, shorter
                        break
            else:
                at += 1
        shown = f"{breach}; shown by {self._steps.windows.describe()} windows, {_text(script)}, then the end"
        return NotConforming(shown)

    def _check(self, script: Script) -> list[Word]:
        life = TriggerLife(self._steps, self._rows)
        words = _ordered(life.live(script))
        rule = "with can_fire = False it never fires"
        fired = [word for word in words if TriggerResult.FIRE in word.result]
        require(self._trigger, rule, f"it said {fired[:1]}", holds=self._trigger.can_fire or not fired)
        for rule, way, other in self._other_lives(script):
            self._require_same(rule, way, words, _ordered(other))
        if self._steps.windows.is_bounded:
            rule = "windows that are gone leave neither timers nor state: clear() deletes timers, and nothing is kept later"
            require(self._trigger, rule, f"there are {life.left()}", holds=not life.left())
        return words

    def _other_lives(self, script: Script) -> Iterator[tuple[str, str, list[Word]]]:
        rule = "it says the same when all is done again: nothing but its state, rows and times counts"
        yield rule, "when done again", self._again(script)
        rule = "it says the same after a restore: all that it keeps is declared state"
        yield rule, "with restores", TriggerLife(self._steps, self._rows).live(script, is_restored=True)
        rule = "it says the same whether time moves at once or in steps"
        yield rule, "in steps", TriggerLife(self._steps, self._rows, moves=3).live(script)
        if self._trigger.takes_rows() and (self._trigger.waits_for_time or not self._steps.windows.merges):
            rule = "it says the same of rows one by one and of many at once: on_element, on_rows and rows_to_fire agree"
            for at_once in _AT_ONCE:
                life = TriggerLife(self._steps, self._rows, at_once=at_once)
                yield rule, f"of up to {at_once} at once", life.live(script)

    def _require_same(self, rule: str, way: str, words: list[Word], others: list[Word]) -> None:
        for word, other in itertools.zip_longest(words, others):
            if word != other:
                found = f"one by one it said {word or 'nothing more'}, {way} {other or 'nothing more'}"
                raise NotConforming.of(self._trigger, rule, found)

    def _again(self, script: Script) -> list[Word]:
        """The same once more, with a look at states that are combined when windows merge, in no promised order."""
        life = TriggerLife(self._steps, self._rows)
        for number, action in enumerate(script):
            life.live([action], first=number)
            for state, values in life.values().items() if self._steps.windows.merges else ():
                self._check_reduce(state, values[:4])
        return life.words

    def _check_reduce(self, state: ReducingState[Any], values: list[Any]) -> None:
        rule = f"merging: state {state.name!r} is the same in whatever order windows are combined"
        reduce = state.reduce
        for a, b, c in itertools.product(values, repeat=3):
            same = reduce(a, b) == reduce(b, a) and reduce(reduce(a, b), c) == reduce(a, reduce(b, c))
            require(self._trigger, rule, f"reduce of {a!r}, {b!r} and {c!r} is not", holds=same)


class _OneWindow(WindowAssigner):
    """The same window for all rows."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def assign(self, event: Any, timestamp: int) -> tuple[Window]:
        return (self._window,)


def _check_growth(trigger: Trigger, rows: Rows, size_ms: int) -> None:
    """Each row of a session after the first merges windows, and the timers of the old ones are gone."""
    gap_ms = size_ms // 4
    came = tuple(Came("a", place % len(rows), place * gap_ms // 2) for place in range(4))
    window = Window(0, came[-1].timestamp + gap_ms)
    for times in itertools.permutations([Moved(EVENT, MAX_TIMESTAMP), Moved(PROCESSING, 8 * size_ms)]):
        script: list[Action] = [*((one,) for one in came), *times]
        by_time = []
        for windows in (_OneWindow(window), session(f"{gap_ms} ms")):
            life = TriggerLife(Steps(trigger, windows, size_ms // 2, rows.schema), rows)
            words = [w for w in life.live(script) if TriggerResult.FIRE in w.result and w.about != "row"]
            by_time.append(words)
        rule = "merging: rearm() sets the timers that a window needs when it has grown"
        found = f"in a window that is there at once it said {by_time[0][:1]}, in a session nothing; {_text(script)}"
        require(trigger, rule, found, holds=bool(by_time[1]) or not by_time[0])


def _ordered(words: list[Word]) -> list[Word]:
    """Words by action and window; in which order different windows have their turn is not promised."""
    return sorted(words, key=lambda word: (word.action, word.key, word.window))


def _without_one(script: list[Action], at: int) -> Iterator[list[Action]]:
    """The sequence without one of its actions, and without one of the rows of that."""
    before, action, after = script[:at], script[at], script[at + 1 :]
    yield [*before, *after]
    if not isinstance(action, Moved) and len(action) > 1:
        for number in range(len(action)):
            yield [*before, (*action[:number], *action[number + 1 :]), *after]


def _text(script: Script) -> str:
    """A sequence in words."""
    return ", then ".join(map(_action_text, script))


def _action_text(action: Action) -> str:
    if isinstance(action, Moved):
        name = "the watermark" if action.domain == EVENT else "the clock"
        return f"{name} moves to {'its end' if action.to == MAX_TIMESTAMP else action.to}"
    return "rows " + ", ".join(f"{one.key}@{one.timestamp} (rows[{one.row}])" for one in action)
