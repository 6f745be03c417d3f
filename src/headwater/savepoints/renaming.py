"""What was renamed between a savepoint and a program: steps, states, columns and fields, by their old paths."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headwater.savepoints.errors import SavepointError
from headwater.state.spread import set_by, timed


@dataclass(frozen=True)
class Renaming:
    """The new names of the last parts of old paths: 'step', 'step/state', 'step/state.column.field'."""

    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, renamed: Mapping[str, str] | None) -> Renaming:
        for old, new in (renamed or {}).items():
            if not old or not new or "/" in new:
                raise SavepointError.bad_rename(str(old), f"names nothing new: {new!r}")
        return cls(tuple(sorted((renamed or {}).items())))

    def step(self, uid: str) -> str:
        """What a step is called now."""
        return dict(self.names).get(uid, uid)

    def state(self, uid: str, name: str) -> str:
        """What a state of a step is called now; the step goes by its old name."""
        return dict(self.names).get(f"{uid}/{name}", name)

    def fields(self, uid: str, state: str, states: Collection[str]) -> dict[str, str]:
        """Of a state, by old path of a column or field: its new name. `states` are all of the step; a name may have dots."""
        prefix = f"{uid}/{state}."
        return {
            old.removeprefix(prefix): new
            for old, new in self.names
            if old.startswith(prefix) and old.removeprefix(f"{uid}/") not in states
        }

    def channel(self, name: str) -> str:
        """What a channel, which starts with the names of steps, is called now."""
        uid, is_channel, rest = name.partition("/")
        if not is_channel:
            return name
        by = set_by(name)
        place = self.step(uid if by is None else uid.removesuffix(timed("", by)))
        return f"{place if by is None else timed(place, self.step(by))}/{rest}"
