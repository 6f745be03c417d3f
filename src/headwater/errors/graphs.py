"""Errors of a job graph, met when it is built."""

from __future__ import annotations

from headwater.errors.roots import HeadwaterError, nearest


class GraphError(HeadwaterError, ValueError):
    """A job graph that must not run; raised while it is built, before any engine starts."""

    @classmethod
    def duplicate_uid(cls, uid: str, first: str, second: str) -> GraphError:
        return cls(
            f"uids of steps must be unique; {uid!r} is the uid of {first} and of {second}; "
            f"give one of them another with .with_uid(...)"
        )

    @classmethod
    def bad_uid(cls, uid: object) -> GraphError:
        return cls(f"a uid is made of letters, digits, '_', '-' and '.', at most 100 of them; got {uid!r}")

    @classmethod
    def nothing_to_run(cls, job: str) -> GraphError:
        return cls(f"job {job!r} has no sink, so nothing would run; end a stream with .sink(...) or .collect()")

    @classmethod
    def no_input(cls, title: str) -> GraphError:
        return cls(f"every step but a source needs an input; {title} has none; build steps on streams")

    @classmethod
    def needs_keyed(cls, step: str, got: str) -> GraphError:
        return cls(f"step {step!r} needs a keyed stream; got {got}; call .key_by(...) first")

    @classmethod
    def needs_event_time(cls, step: str, source: str, otherwise: str) -> GraphError:
        return cls(
            f"step {step!r} works in event time, and the rows of source {source!r} have none; give the source "
            f"watermarks, such as hw.Watermarks.bounded('time', '5 s'), or {otherwise}"
        )

    @classmethod
    def only_keyed(cls, method: str, got: str, instead: str) -> GraphError:
        return NotKeyed(f".{method}(...) needs a keyed stream; got {got}; call .key_by(...) first{instead}")

    @classmethod
    def shared_output(cls, first: str, second: str, output: str) -> GraphError:
        return cls(
            f"sinks {first!r} and {second!r} both write to {output}; an output belongs to one sink: "
            f"give each its own, or union the streams before one sink"
        )

    @classmethod
    def not_shippable(cls, step: str, what: str, kind: str, why: str, *, opens: bool) -> GraphError:
        place = "in open(), which is called where the function runs" if opens else "where it is used"
        otherwise = "" if opens else ", or in open() of a process function"
        return cls(
            f"step {step!r} goes to workers as a copy, and {what} ({kind}) cannot be copied: {why}; "
            f"make it {place}{otherwise}"
        )

    @classmethod
    def other_environment(cls, step: str) -> GraphError:
        return cls(f"step {step!r} joins streams of two environments; build both from the same hw.Environment")

    @classmethod
    def half_trigger(cls, trigger: str, missing: list[str]) -> GraphError:
        return cls(
            f"trigger {trigger!r} must say of rows one by one and of many at once in one class; "
            f"it has no {' and no '.join(missing)} of its own; "
            f"write on_element, on_rows and rows_to_fire, or on_element alone"
        )

    @classmethod
    def takes_no_changes(cls, step: str, got: str) -> GraphError:
        return cls(
            f"step {step!r} takes rows that are only added; got a changelog ({got}); "
            f"call .with_row_kind() before it: changes are rows then, with a column row_kind that says what each does"
        )

    @classmethod
    def no_such_budget(cls, uid: str, known: list[str]) -> GraphError:
        has = f"those that do are {', '.join(map(repr, known))}" if known else "none does"
        return cls(
            f"state_budget is for steps that keep state, by their uids; {uid!r} is none{nearest(uid, known)}; {has}; "
            f"name one of them, or leave the budget out"
        )

    @classmethod
    def cannot_spill(cls, uid: str, operation: str) -> GraphError:
        return cls(
            f"step {uid!r} cannot spill: {operation} keeps its working state in memory always; "
            f"give its budget on_full='warn' or on_full='fail'"
        )

    @classmethod
    def bad_argument(cls, step: str, rule: str, fact: object, action: str) -> GraphError:
        return cls(f"step {step!r} {rule}; got {fact!r}; {action}")


class NotKeyed(GraphError, AttributeError):
    """What only a keyed stream can do, asked of another one."""
