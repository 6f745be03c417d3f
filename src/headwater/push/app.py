"""The application: who may push what into which topic, and what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.connectors.formats import JsonFormat
from headwater.data.schema import Schema
from headwater.errors import GraphError
from headwater.eventlog import EventLog, Topic
from headwater.eventlog.errors import LogArgument, LogError, LogSchemaMismatch, LogWriteFailed, TopicMissing
from headwater.eventlog.spread import partition_of
from headwater.push import rows
from headwater.serving.bodies import Bodies
from headwater.serving.limits import Limits
from headwater.serving.refused import Refused
from headwater.serving.token import check_token

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Ranges = Mapping[int, tuple[int, int]]
"""By partition: the first offset, and the one after the last."""
_AGAIN_S = "1"
"""When a client that came too often may come again."""
_ONCE = ("authorization", "content-encoding", "content-length", "content-type")
"""Headers that mean something here: of two, another program might heed the other one."""


class PushApp:
    """Appends the rows of a request to a topic, all or none, before it answers.

    At most `max_waiting` requests are worked on at a time; others are told to come again, which is what slows their
    senders down to the pace of the disk. A request counts from when it is there as a whole, so that who sends slowly
    takes nobody's place. Bodies are parsed off the event loop, a batch at a time: what a text becomes in memory is many
    times its size.
    """

    def __init__(self, log: EventLog, token: str, limits: Limits) -> None:
        self._log, self._token, self._limits = log, token, limits
        self._bodies = Bodies(limits)
        self._parsing = asyncio.Lock()
        self._waiting = 0
        self._topics: dict[str, Topic] = {}

    def asgi(self) -> Starlette:
        """As a server runs it."""
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route

        routes = [
            Route("/topics", self._answering(self._list), methods=["GET"]),
            Route("/topics/{topic}", self._answering(self._append), methods=["POST"]),
        ]
        app = Starlette(routes=routes, exception_handlers={HTTPException: _not_routed})
        app.router.redirect_slashes = False  # a redirect would say the client's own Host
        return app

    def _answering(self, work: Any) -> Any:
        """Do a request for who may, and answer whatever comes of it in JSON."""

        async def answer(request: Request) -> Response:
            from starlette.responses import JSONResponse

            try:
                check_token(request, self._token)
                return JSONResponse(await work(request))
            except Refused as refused:
                headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": _AGAIN_S}}.get(refused.status)
                return JSONResponse({"error": str(refused), **refused.facts}, refused.status, headers)

        return answer

    async def _list(self, request: Request) -> dict[str, Any]:
        return {"topics": await asyncio.to_thread(self._listed)}

    def _listed(self) -> dict[str, Any]:
        return {name: self._shown(name) for name in self._log.topics()}

    def _shown(self, name: str) -> dict[str, Any]:
        """What is to be known of a topic, or what is wrong with it, which is none of the others' business."""
        try:
            topic = self._topic(name)
            ends = {str(partition): end for partition, end in topic.end_offsets().items()}
        except (Refused, LogError) as error:
            return {"error": str(error)}
        return {"schema": Schema.of(topic.schema).ddl(), "end": ends}

    async def _append(self, request: Request) -> dict[str, Any]:
        self._check_free()
        kind, key = _kind(request), _key(request)
        topic = await asyncio.to_thread(self._topic, request.path_params["topic"])
        async with self._bodies.received(request) as body:
            self._check_free()
            self._waiting += 1
            try:
                table = await self._table(body, kind, topic.schema)
                offsets = await asyncio.to_thread(_appended, topic, table, key)
            finally:
                self._waiting -= 1
        return {"appended": len(table), "offsets": offsets}

    async def _table(self, body: bytearray, kind: str, schema: pa.Schema) -> pa.Table:
        """The rows of a body. Requests take turns after each batch, so that a small one does not wait for a large one."""
        batches, found = rows.batches(body, kind, schema), []
        is_over = False
        while not is_over:
            async with self._parsing:
                batch = await asyncio.to_thread(next, batches, None)
            is_over = batch is None
            found.append(batch)
        return pa.Table.from_batches(found[:-1], schema)

    def _check_free(self) -> None:
        if self._waiting >= self._limits.max_waiting:
            raise Refused(429, f"{self._waiting} requests are being worked on; come again in {_AGAIN_S} s")

    def _topic(self, name: str) -> Topic:
        if name not in self._topics:
            try:
                topic = self._log.topic(name)
                JsonFormat().check(topic.schema, f"push to {name}")
            except (TopicMissing, LogArgument) as error:
                raise Refused(404, str(error)) from None
            except GraphError as error:
                raise Refused(409, str(error)) from None
            except LogError as error:
                raise Refused(500, str(error)) from None
            self._topics[name] = topic
        return self._topics[name]


def _kind(request: Request) -> str:
    """The content type of a body that can be read."""
    for name in _ONCE:
        if len(request.headers.getlist(name)) > 1:
            raise Refused(400, f"the request has {name} twice")
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        raise Refused(400, "the request has a length and is chunked; send one of these")
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise Refused(415, f"the body is encoded as {coding}; send it as it is")
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind not in rows.KINDS:
        raise Refused(415, f"the content type is {kind}; send one of {', '.join(rows.KINDS)}")
    return kind


def _key(request: Request) -> str | None:
    given = request.query_params.getlist("key")
    if len(given) > 1:
        raise Refused(400, f"rows go by one key; the request has {len(given)}")
    return given[0] if given else None


def _appended(topic: Topic, table: pa.Table, key: str | None) -> dict[str, list[int]]:
    try:
        ranges = {0: topic.append(table)} if key is None else topic.append_keyed(table, by=key)
    except (LogArgument, LogSchemaMismatch) as error:
        raise Refused(400, str(error)) from None
    except LogError as error:
        raise _partly(topic, table, key, error) from None
    try:
        topic.flush()
    except LogError as error:
        raise _not_done(error, ranges, [], is_durable=False) from None
    return _named(ranges)


def _partly(topic: Topic, table: pa.Table, key: str | None, error: LogError) -> Refused:
    """Some partitions may have taken their rows: who sent them is told which rows are left."""
    try:
        topic.flush()
        is_durable = True
    except LogError:
        is_durable = False
    if key is None:
        missing = list(range(1, len(table) + 1))
    else:
        places = partition_of(table.column(key), topic.partitions, key).tolist()
        missing = [number for number, place in enumerate(places, 1) if place not in error.appended]
    return _not_done(error, error.appended, missing, is_durable=is_durable)


def _not_done(error: LogError, ranges: Ranges, missing: list[int], *, is_durable: bool) -> Refused:
    appended = sum(end - start for start, end in ranges.values())
    return Refused(
        507 if isinstance(error, LogWriteFailed) else 500,
        f"{appended:,} rows are in the log, {len(missing):,} are not; send only those in 'missing' again; {error}",
        appended=appended,
        offsets=_named(ranges),
        missing=missing,
        durable=is_durable,
    )


async def _not_routed(_: Request, error: Any) -> Response:
    """What is asked for is not there, or not in this way."""
    from starlette.responses import JSONResponse

    phrase = HTTPStatus(error.status_code).phrase.lower()
    return JSONResponse(
        {"error": f"{phrase}; there are GET /topics and POST /topics/NAME"}, error.status_code, error.headers
    )


def _named(ranges: Ranges) -> dict[str, list[int]]:
    return {str(partition): list(offsets) for partition, offsets in ranges.items()}
