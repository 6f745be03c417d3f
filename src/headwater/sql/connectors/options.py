"""The options of a table, taken one by one; what nobody takes is refused, with the names that are like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.durations import duration_ms
from headwater.errors import DurationError
from headwater.sql.errors import SqlError
from headwater.sql.text.places import Place
from headwater.sql.text.secrets import is_secret


class Options:
    """What stands behind WITH. Values of secret options are never shown."""

    def __init__(
        self, table: str, given: Mapping[str, str], places: Mapping[str, Place], place: Place | None = None
    ) -> None:
        self.table, self.place = table, place
        self._given, self._places = dict(given), places
        self._asked: dict[str, None] = {}

    def has(self, key: str) -> bool:
        return key in self._given

    def text(self, *keys: str) -> str | None:
        """A value, under the first of some names that is given."""
        self._asked.update(dict.fromkeys(keys))
        found = [key for key in keys if key in self._given]
        if len(found) > 1:
            raise self.bad(found[1], f"says the same as {found[0]!r}", "leave one of them out")
        return self._given[found[0]] if found else None

    def required(self, *keys: str) -> str:
        found = self.text(*keys)
        if not found:
            raise SqlError.no_option(self.place, self.table, keys[0])
        return found

    def choice(self, key: str, known: Sequence[str], default: str | None = None) -> str:
        """One of some words."""
        found = self.text(key)
        if found is None and default is not None:
            return default
        if found is None:
            raise SqlError.no_option(self.place, self.table, key, f"'{key}' = '{known[0]}'")
        if found.lower() not in known:
            raise self.bad(key, f"is {self._shown(key)}", f"choose from {', '.join(known)}")
        return found.lower()

    def whole(self, *keys: str, least: int | None = None) -> int | None:
        """A whole number."""
        found = self.text(*keys)
        if found is None:
            return None
        try:
            number = int(found)
        except ValueError:
            number = None
        if number is None or (least is not None and number < least) or len(found) > 20:
            key = next(key for key in keys if self.has(key))
            raise self.bad(key, f"is {self._shown(key)}", f"give a whole number{_from(least)}")
        return number

    def flag(self, key: str, *, default: bool) -> bool:
        return self.choice(key, ("true", "false"), str(default).lower()) == "true"

    def duration(self, key: str) -> str | None:
        """A time such as '10 s'."""
        found = self.text(key)
        if found is not None:
            try:
                duration_ms(found, what=key)
            except DurationError:
                raise self.bad(key, f"is {self._shown(key)}", "write a time such as '10 s' or '5 min'") from None
        return found

    def names(self, key: str, known: Sequence[str]) -> tuple[str, ...]:
        """Names of columns, with ';' or ',' between them."""
        found = self.text(key)
        if found is None:
            return ()
        names = tuple(name.strip() for name in found.replace(",", ";").split(";") if name.strip())
        for name in names:
            if name not in known:
                raise SqlError.no_column(self._places.get(key, self.place), name, known)
        return names

    def starting(self, prefix: str) -> dict[str, str]:
        """All options under a prefix, without it."""
        found = {key.removeprefix(prefix): value for key, value in self._given.items() if key.startswith(prefix)}
        self._asked.update(dict.fromkeys(prefix + key for key in found))
        return found

    def finish(self, connector: str) -> None:
        """Refuse what nobody has taken."""
        for key in self._given:
            if key not in self._asked:
                place = self._places.get(key, self.place)
                raise SqlError.unknown_option(place, self.table, key, connector, list(self._asked))

    def bad(self, key: str, problem: str, action: str) -> SqlError:
        """An option that is wrong."""
        return SqlError.bad_option(self._places.get(key, self.place), self.table, key, problem, action)

    def _shown(self, key: str) -> str:
        value = self._given[key]
        return "wrong" if is_secret(key, value) else repr(value[:100])


def _from(least: int | None) -> str:
    return "" if least is None else f" from {least} on"
