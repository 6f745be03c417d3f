"""SET and RESET: the settings that are known, and what to do instead of those that are not."""

from __future__ import annotations

from typing import Final, NamedTuple

from headwater.durations import duration_ms
from headwater.errors import DurationError
from headwater.sql.errors import SqlError
from headwater.sql.session import STATE_TTL
from headwater.sql.text.places import Place
from headwater.sql.text.statements import Reset, SetOption

_ONLY: Final = {
    "table.local-time-zone": ("UTC", "times are in UTC; convert them with CONVERT_TZ"),
    "execution.runtime-mode": ("streaming", "run with bounded=True to read what is there and end"),
    "table.sql-dialect": ("default", "the dialect is Flink's own"),
    "table.exec.sink.not-null-enforcer": ("error", "filter rows with NULL in the query"),
    "table.exec.sink.upsert-materialize": ("auto", "leave it out"),
}
"""Settings that have one value here, and the way out for who wants another."""
_ELSEWHERE: Final = {
    "parallelism.default": "write Environment(parallelism=…)",
    "table.exec.resource.default-parallelism": "write Environment(parallelism=…)",
    "pipeline.name": "the environment has the name of the job",
    "pipeline.max-parallelism": "write Environment(key_groups=…)",
    "execution.checkpointing.interval": "write Environment(checkpoint_interval=…)",
    "execution.checkpointing.mode": "write Environment(checkpointing=…)",
    "execution.checkpointing.dir": "write Environment(job_dir=…)",
    "execution.checkpointing.unaligned.enabled": "write Environment(unaligned=True)",
    "execution.state-recovery.path": "write env.run_sql(…, from_=…)",
    "restart-strategy.type": "write Environment(restart=…)",
    "state.backend.type": "write Environment(state_backend=…)",
    "table.exec.source.idle-timeout": "set 'scan.watermark.idle-timeout' of the table",
    "table.exec.mini-batch.enabled": "leave it out: an epoch is a batch already",
    "table.exec.mini-batch.allow-latency": "write Environment(checkpoint_interval=…)",
    "table.exec.mini-batch.size": "write Environment(max_rows_per_epoch=…)",
}
_PREFIXES: Final = {
    "sql-client.": "leave it out: there is no client",
    "pipeline.jars": "leave it out: there is no Java",
}


class Setting(NamedTuple):
    """A setting that is set."""

    key: str
    value: str


def set_option(settings: dict[str, str], statement: SetOption) -> list[Setting]:
    """Set one, or show all."""
    key, place = statement.key, statement.key_place
    if not key:
        return [Setting(*item) for item in sorted(settings.items())]
    if key in _ELSEWHERE:
        raise SqlError.not_supported(place, f"setting {key!r}", _ELSEWHERE[key])
    for prefix, action in _PREFIXES.items():
        if key.startswith(prefix):
            raise SqlError.not_supported(place, f"setting {key!r}", action)
    _check_known(key, place)
    if key == STATE_TTL:
        settings[key] = _duration(key, statement.value, place)
        return []
    only, action = _ONLY[key]
    if statement.value.lower() != only.lower():
        raise SqlError.wrong_setting(place, key, statement.value, only, action)
    settings[key] = only
    return []


def reset(settings: dict[str, str], statement: Reset) -> None:
    """Forget one, or all."""
    if not statement.key:
        settings.clear()
        return
    _check_known(statement.key, statement.place)
    settings.pop(statement.key, None)


def _duration(key: str, value: str, place: Place | None) -> str:
    try:
        duration_ms(value, what=key)
    except DurationError as error:
        raise SqlError.wrong_expression(place, str(error), "write '1 h', or '0 s' for ever") from None
    return value


def _check_known(key: str, place: Place | None) -> None:
    known = (*_ONLY, STATE_TTL)
    if key not in known:
        raise SqlError.unknown_setting(place, key, [*known, *_ELSEWHERE])
