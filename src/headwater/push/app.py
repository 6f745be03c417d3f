"""The application: who may push what into which topic, and what is answered."""

from __future__ import annotations

import asyncio
import hmac
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.connectors.formats import JsonFormat, numbered_rows
from headwater.data.schema import Schema
from headwater.errors import GraphError
from headwater.eventlog import EventLog, Topic
from headwater.eventlog.errors import LogArgument, LogError, LogWriteFailed, TopicMissing

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Row = tuple[Any, bytes]
"""What a row says, and its text."""
_LINES = ("application/x-ndjson", "application/jsonl")
_AGAIN_S = "1"
"""When a client that came too often may come again."""


class Refused(Exception):
    """A request that is not done: its status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class PushApp:
    """Appends the rows of a request to a topic, all or none, before it answers.

    At most `max_waiting` requests are worked on at a time; others are told to come again, which is what slows their
    senders down to the pace of the disk.
    """

    def __init__(self, log: EventLog, token: str, *, max_body_bytes: int, max_waiting: int) -> None:
        self._log, self._token = log, token
        self._max_body_bytes, self._max_waiting = max_body_bytes, max_waiting
        self._waiting = 0
        self._topics: dict[str, Topic] = {}
        self._json = JsonFormat()

    def asgi(self) -> Starlette:
        """As a server runs it."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [
            Route("/topics", self._answering(self._list), methods=["GET"]),
            Route("/topics/{topic}", self._answering(self._append), methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def _answering(self, work: Any) -> Any:
        """Do a request for who may, and answer whatever comes of it in JSON."""

        async def answer(request: Request) -> Response:
            from starlette.responses import JSONResponse

            try:
                self._check_token(request)
                return JSONResponse(await work(request))
            except Refused as refused:
                headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": _AGAIN_S}}.get(refused.status)
                return JSONResponse({"error": str(refused)}, refused.status, headers)

        return answer

    def _check_token(self, request: Request) -> None:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            raise Refused(401, "send the server's token as 'Authorization: Bearer …'")

    async def _list(self, request: Request) -> dict[str, Any]:
        found = [self._topic(name) for name in self._log.topics()]
        return {
            "topics": {
                topic.name: {"schema": Schema.of(topic.schema).ddl(), "end": _named(topic.end_offsets())}
                for topic in found
            }
        }

    async def _append(self, request: Request) -> dict[str, Any]:
        if self._waiting >= self._max_waiting:
            raise Refused(429, f"{self._waiting} requests are being worked on; come again in {_AGAIN_S} s")
        self._waiting += 1
        try:
            topic = self._topic(request.path_params["topic"])
            rows = _rows(await self._body(request), request.headers.get("content-type", "application/json"))
            key = request.query_params.get("key")
            offsets = await asyncio.to_thread(self._appended, topic, rows, key)
        finally:
            self._waiting -= 1
        return {"appended": len(rows), "offsets": offsets}

    async def _body(self, request: Request) -> bytes:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._max_body_bytes:
                raise Refused(413, f"a request may have {self._max_body_bytes:,} bytes; send fewer rows at a time")
        return bytes(body)

    def _topic(self, name: str) -> Topic:
        if name not in self._topics:
            try:
                topic = self._log.topic(name)
                self._json.check(topic.schema, f"push to {name}")
            except (TopicMissing, LogArgument) as error:
                raise Refused(404, str(error)) from None
            except GraphError as error:
                raise Refused(409, str(error)) from None
            self._topics[name] = topic
        return self._topics[name]

    def _appended(self, topic: Topic, rows: list[Row], key: str | None) -> dict[str, list[int]]:
        table = self._table(topic, rows)
        try:
            ranges = {0: topic.append(table)} if key is None else topic.append_keyed(table, by=key)
            topic.flush()
        except LogWriteFailed as error:
            raise Refused(507, str(error)) from None
        except LogError as error:
            raise Refused(400, str(error)) from None
        return {str(partition): list(offsets) for partition, offsets in ranges.items()}

    def _table(self, topic: Topic, rows: list[Row]) -> pa.Table:
        known = Schema.of(topic.schema).ddl()
        for number, (members, _) in enumerate(rows, 1):
            if not isinstance(members, dict):
                raise Refused(400, f"row {number} is not an object")
            if unknown := sorted(set(members) - set(topic.schema.names)):
                raise Refused(400, f"row {number} has {', '.join(unknown)}; the topic has '{known}'")
        batches = []
        for found in numbered_rows(list(enumerate((text for _, text in rows), 1)), self._json, topic.schema):
            if isinstance(found, tuple):
                (number, _), reason = found
                raise Refused(400, f"row {number} does not fit '{known}': {reason}")
            batches.append(found)
        return pa.Table.from_batches(batches, topic.schema)


def _rows(body: bytes, content_type: str) -> list[Row]:
    """The rows of a body: an object, an array of objects, or an object on each line."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _LINES:
        lines = [line for line in body.splitlines() if line.strip()]
        return [(_loaded(line, f"row {number}"), line) for number, line in enumerate(lines, 1)]
    if kind != "application/json":
        known = ", ".join(("application/json", *_LINES))
        raise Refused(415, f"the content type is {kind}; send one of {known}")
    given = _loaded(body, "the body")
    return [(row, json.dumps(row).encode()) for row in (given if isinstance(given, list) else [given])]


def _loaded(text: bytes, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Refused(400, f"{what} is not JSON: {error}") from None


def _named(offsets: dict[int, int]) -> dict[str, int]:
    return {str(partition): at for partition, at in offsets.items()}
