"""What can be asked of the API, each in one place: where, with what, and who answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.control.saved import NAME
from headwater.web.answers import epochs, failures, graph, rows, savepoints, states, summary, times
from headwater.web.fields import BOOLEAN, INTEGER, STRING, Field
from headwater.web.watched import WatchedJob, WatchedJobs

Given = dict[str, Any]
Work = Callable[[WatchedJobs, Given], Any]


@dataclass(frozen=True)
class Endpoint:
    """A place of the API and a method."""

    method: str
    path: str
    summary: str
    answer: str
    """The name of the form of what is answered."""
    work: Work
    """Run on a thread, with the fields of the path, the query and the body by name."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] = ()
    status: int = 200
    asks_job: bool = False
    """Whether the running job is asked, which may take long, so that few are at it at a time."""

    @property
    def name(self) -> str:
        """As tools call it."""
        parts = [part.strip("{}") for part in self.path.removeprefix("/api/").split("/") if part]
        return "_".join([self.method.lower(), *parts])

    @property
    def in_path(self) -> list[Field]:
        """The fields of the path."""
        return [IN_PATH[part.strip("{}")] for part in self.path.split("/") if part.startswith("{")]


JOB = Field(
    "job",
    STRING,
    "the id of a job, as GET /api/jobs lists it",
    is_required=True,
    pattern="[0-9a-f]{12}",
    least=12,
    most=12,
)
SAVEPOINT = Field("name", STRING, "a savepoint's name: no path", is_required=True, pattern=NAME, least=1, most=64)
IN_PATH = {field.name: field for field in (JOB, SAVEPOINT)}
_STEP = Field("step", STRING, "the uid of a step", is_required=True, least=1, most=500)
_STATE = Field("state", STRING, "the name of a state", is_required=True, least=1, most=500)
_FROM = Field("savepoint", STRING, "look into this savepoint, not into the job", pattern=NAME, least=1, most=64)


def _of_job(work: Callable[..., Any], *names: str) -> Work:
    """What is answered for a job, with some of the fields."""

    def answer(jobs: WatchedJobs, given: Given) -> Any:
        job: WatchedJob = jobs.find(given["job"])
        return work(job, **{name: given[name] for name in names})

    return answer


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/jobs",
        "List the jobs",
        "Jobs",
        lambda jobs, _: {"jobs": [summary.summary(one) for one in jobs.all()]},
    ),
    Endpoint("GET", "/api/jobs/{job}", "Where a job stands", "Job", _of_job(summary.summary)),
    Endpoint("GET", "/api/jobs/{job}/graph", "Steps, rates, and where time goes", "Graph", _of_job(graph.graph)),
    Endpoint(
        "GET",
        "/api/jobs/{job}/epochs",
        "The history of epochs, newest first",
        "Epochs",
        _of_job(epochs.epochs, "skip", "limit"),
        query=(
            Field("skip", INTEGER, "how many of the newest to pass over", default=0, most=10_000_000),
            Field("limit", INTEGER, "how many to give", default=100, least=1, most=500),
        ),
    ),
    Endpoint(
        "GET", "/api/jobs/{job}/watermarks", "Event time by split and step", "Watermarks", _of_job(times.watermarks)
    ),
    Endpoint(
        "GET",
        "/api/jobs/{job}/firing",
        "Why a window has not fired",
        "Firing",
        _of_job(times.firing, "step", "end_ms"),
        query=(
            _STEP,
            Field("end_ms", INTEGER, "when the window ends; the next one that is to fire if it is left out"),
        ),
    ),
    Endpoint(
        "GET",
        "/api/jobs/{job}/windows",
        "The windows of a step that hold rows, as the running job says",
        "Windows",
        _of_job(times.windows, "step"),
        query=(_STEP,),
        asks_job=True,
    ),
    Endpoint("GET", "/api/jobs/{job}/state", "The size and growth of state", "States", _of_job(states.states)),
    Endpoint(
        "POST",
        "/api/jobs/{job}/state/lookup",
        "What is kept for a key",
        "Value",
        _of_job(states.look_up, "step", "state", "key", "savepoint"),
        body=(_STEP, _STATE, Field("key", STRING, "text, or JSON", is_required=True, most=10_000), _FROM),
        asks_job=True,
    ),
    Endpoint(
        "POST",
        "/api/jobs/{job}/state/query",
        "What a query in DuckDB's SQL gives over the table state",
        "Table",
        _of_job(states.ask, "step", "state", "sql", "savepoint"),
        body=(_STEP, _STATE, Field("sql", STRING, "the query", is_required=True, least=1, most=10_000), _FROM),
        asks_job=True,
    ),
    Endpoint("GET", "/api/jobs/{job}/late", "Late rows and dead letters", "Late", _of_job(rows.late)),
    Endpoint("GET", "/api/jobs/{job}/sinks", "How far sinks are, and their guarantees", "Sinks", _of_job(rows.sinks)),
    Endpoint("GET", "/api/jobs/{job}/failures", "Failures, restarts, the log", "Failures", _of_job(failures.failures)),
    Endpoint("GET", "/api/jobs/{job}/settings", "How it was started", "Settings", _of_job(failures.settings)),
    Endpoint(
        "GET", "/api/jobs/{job}/savepoints", "The savepoints of a job", "Savepoints", _of_job(savepoints.savepoints)
    ),
    Endpoint(
        "POST",
        "/api/jobs/{job}/savepoints",
        "Take a savepoint",
        "Taken",
        _of_job(savepoints.take, "name"),
        body=(SAVEPOINT,),
        status=201,
        asks_job=True,
    ),
    Endpoint(
        "POST",
        "/api/jobs/{job}/savepoints/{name}/check",
        "Whether a savepoint is whole and fits",
        "Verdict",
        _of_job(savepoints.check, "name"),
        asks_job=True,
    ),
    Endpoint(
        "POST",
        "/api/jobs/{job}/stop",
        "Stop a job, with a savepoint if one is named",
        "Stopped",
        _of_job(savepoints.stop, "savepoint", "drain"),
        body=(
            Field("savepoint", STRING, "save the state at the end", pattern=NAME, least=1, most=64),
            Field("drain", BOOLEAN, "let the input end first, so that all windows fire", default=False),
        ),
        asks_job=True,
    ),
)
