"""`headwater run`: a job in the foreground, until it ends or is stopped."""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Annotated, TextIO

import typer

import headwater as hw
from headwater.cli.loading import load
from headwater.cli.output import Json, show_json
from headwater.cli.pairs import pairs_of
from headwater.errors import JobError
from headwater.job.layout import JobLayout
from headwater.job.log_lines import line_format
from headwater.streams.overrides import Overrides
from headwater.words import EngineName, LogFormat, LogLevel

_LOG = logging.getLogger("headwater")
_LOG_BYTES, _LOGS_KEPT = 10 << 20, 3

JobFile = Annotated[Path, typer.Argument(help="a Python file with build(env), or with an hw.Environment")]
JobDir = Annotated[Path | None, typer.Option(help="the job folder, from which the job goes on when it runs again")]
Parallelism = Annotated[int | None, typer.Option(min=1, help="the number of subtasks of each step")]
Master = Annotated[str | None, typer.Option(help="Spark's master, as local[4] or spark://host:7077")]
Engine = Annotated[EngineName | None, typer.Option(help="where it runs: on Spark, or in this process")]
Config = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="a setting of Spark; may be repeated")]
Renamed = Annotated[
    list[str] | None, typer.Option(metavar="OLD=NEW", help="a step or state that has another name now; may be repeated")
]
AllowDroppedState = Annotated[
    bool, typer.Option("--allow-dropped-state", help="go on although state in the savepoint has no place any more")
]
Bounded = Annotated[
    bool, typer.Option("--bounded", help="read what is there; event time goes to its end, and the job is over")
]


def run(
    file: JobFile,
    from_: Annotated[Path | None, typer.Option("--from", help="a savepoint to go on from, in a new job folder")] = None,
    job_dir: JobDir = None,
    parallelism: Parallelism = None,
    master: Master = None,
    engine: Engine = None,
    config: Config = None,
    renamed: Renamed = None,
    allow_dropped_state: AllowDroppedState = False,
    bounded: Bounded = False,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="read what is there and stop; the next run goes on")
    ] = False,
    log_level: Annotated[LogLevel, typer.Option(help="what is shown of the log")] = "warning",
    log_format: Annotated[LogFormat, typer.Option(help="the lines of the log: text, or an object each")] = "text",
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="serve metrics for Prometheus on this port of loopback")
    ] = None,
    progress: Annotated[bool | None, typer.Option(help="a live line; by default in a terminal")] = None,
    ui: Annotated[
        bool, typer.Option("--ui", help="show it in a browser; the address is printed, with --json on stderr")
    ] = False,
    ui_port: Annotated[int, typer.Option(min=0, max=65_535, help="of --ui; 0 is any that is free")] = 0,
    as_json: Json = False,
) -> None:
    """Run a job in the foreground.

    Ctrl-C stops it after the epoch, a second one at once; the same command goes on from there.
    """
    overrides = overrides_of(job_dir, parallelism, master, engine, config)
    if metrics_port is not None:
        overrides = replace(overrides, watchers=(hw.metrics.prometheus(metrics_port),))
    env = load(file, overrides)
    if env.job_dir is not None:
        _write_log(JobLayout(Path(env.job_dir)).log, log_level, log_format)
    try:
        with _shown(env.job_dir, ui_port, says=sys.stderr if as_json else None) if ui else nullcontext():
            job = env.run(
                from_=from_,
                renamed=pairs_of("--renamed", renamed),
                allow_dropped_state=allow_dropped_state,
                bounded=bounded or None,
                available_now=available_now,
                progress=progress,
            )
    except hw.HeadwaterError as error:
        logging.getLogger("headwater.job").info("the job failed: %s: %s", type(error).__name__, error)
        raise
    if as_json:
        show_json(job.status().to_json())


def _shown(job_dir: Path | None, port: int, *, says: TextIO | None) -> AbstractContextManager[None]:
    """The dashboard, beside the job."""
    from headwater.web.foreground import beside

    if job_dir is None:
        raise JobError.not_supported("--ui shows a job from its folder", "give it one with --job-dir")
    return beside(job_dir, port=port, says=says)


def overrides_of(
    job_dir: Path | None,
    parallelism: int | None,
    master: str | None,
    engine: EngineName | None,
    config: list[str] | None,
) -> Overrides:
    """Options as settings."""
    spark_config = {**({} if master is None else {"spark.master": master}), **pairs_of("--config", config)}
    return Overrides(job_dir, parallelism, engine, spark_config)


def _write_log(file: Path, shown: LogLevel, log_format: LogFormat) -> None:
    """Write all but details into the job folder, and show from a level on."""
    file.parent.mkdir(parents=True, exist_ok=True)
    form = line_format(log_format)
    written = RotatingFileHandler(file, maxBytes=_LOG_BYTES, backupCount=_LOGS_KEPT)
    seen = logging.StreamHandler()
    for handler, level in ((written, min(logging.INFO, logging.getLevelName(shown.upper()))), (seen, shown.upper())):
        handler.setFormatter(form)
        handler.setLevel(level)
        _LOG.addHandler(handler)
    _LOG.setLevel(written.level)
