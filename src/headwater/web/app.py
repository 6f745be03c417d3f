"""The application: every request is guarded, and answered in JSON; pages are files of the package."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.serving.bodies import Bodies
from headwater.serving.limits import Limits
from headwater.serving.refused import Refused
from headwater.serving.token import check_token
from headwater.web.answers.summary import summary
from headwater.web.assets import load_assets
from headwater.web.endpoints import ENDPOINTS, Endpoint, Given
from headwater.web.events import Events
from headwater.web.fields import from_body, from_query
from headwater.web.guard import HEADERS, RefusalLog, check_host, check_site
from headwater.web.openapi import description
from headwater.web.plain import to_bytes
from headwater.web.watched import WatchedJobs

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_FRESH_S = 0.2
"""For how long an answer is given again: whoever asks more often learns no more, and costs the machine nothing."""
_MOST_ASKING = 4
"""Requests that wait for a running job, at a time."""
_MOST_ANSWERS = 256
"""Answers that are kept for those who ask again at once."""
_JSON = "application/json"
_ALWAYS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class WebApp:
    """The dashboard and its API, for the jobs in some folders."""

    def __init__(self, jobs: WatchedJobs, token: str, limits: Limits) -> None:
        self._jobs, self._token = jobs, token
        self._bodies = Bodies(limits)
        self._asking = 0
        self._refusals = RefusalLog()
        self._fresh: dict[str, tuple[float, asyncio.Task[bytes]]] = {}
        self.events = Events(self._listed, _without_clock)

    def asgi(self) -> Starlette:
        """As a server runs it."""
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route

        routes = [
            *(Route(f"/{name}", self._page(asset.answer), methods=["GET"]) for name, asset in load_assets().items()),
            Route("/", self._page(load_assets()["index.html"].answer), methods=["GET"]),
            Route("/api/openapi.json", self._answering(self._describe), methods=["GET"]),
            Route("/api/events", self._answering(self._listen), methods=["GET"]),
            *(Route(one.path, self._answering(self._doing(one)), methods=[one.method]) for one in ENDPOINTS),
        ]
        app = Starlette(routes=routes, exception_handlers={HTTPException: self._not_routed})
        app.router.redirect_slashes = False  # a redirect would say the client's own Host
        return app

    def _page(self, answer: Callable[[Request], Response]) -> Any:
        """A file, which holds no secret; but another site's name leads to none."""

        async def guarded(request: Request) -> Response:
            try:
                check_host(request)
                return _with_headers(answer(request))
            except Refused as refused:
                return self._refused(request, refused)

        return guarded

    def _answering(self, work: Callable[[Request], Awaitable[Response]]) -> Any:
        """Do a request for who may, and answer whatever comes of it."""

        async def answer(request: Request) -> Response:
            try:
                check_host(request)
                check_site(request)
                check_token(request, self._token)
                return _with_headers(await work(request))
            except Refused as refused:
                return self._refused(request, refused)
            except HeadwaterError as error:
                return self._refused(request, Refused(409, str(error)))
            except OSError as error:
                return self._refused(request, Refused(500, f"a file of the job cannot be read: {error.strerror}"))

        return answer

    def _refused(self, request: Request, refused: Refused) -> Response:
        from starlette.responses import Response

        self._refusals.note(request, refused)
        headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(refused.status)
        content = to_bytes({"error": str(refused), **refused.facts})
        return _with_headers(Response(content, refused.status, headers, _JSON))

    async def _not_routed(self, request: Request, error: Any) -> Response:
        phrase = HTTPStatus(error.status_code).phrase.lower()
        answer = self._refused(
            request, Refused(error.status_code, f"{phrase}; GET /api/openapi.json tells what there is")
        )
        answer.headers.update(error.headers or {})
        return answer

    async def _describe(self, request: Request) -> Response:
        return _json(to_bytes(description()), 200)

    async def _listen(self, request: Request) -> Response:
        from starlette.responses import StreamingResponse

        return StreamingResponse(await self.events.stream(), media_type="text/event-stream")

    def _doing(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def work(request: Request) -> Response:
            given = await self._given(endpoint, request)
            if endpoint.method == "GET" and not endpoint.asks_job:
                return _json(await self._soon(endpoint, given), endpoint.status)
            return _json(await self._asked(endpoint, given), endpoint.status)

        return work

    async def _given(self, endpoint: Endpoint, request: Request) -> Given:
        given = {field.name: field.checked(request.path_params[field.name]) for field in endpoint.in_path}
        given |= from_query(request, endpoint.query)
        if endpoint.method != "POST":
            return given
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _JSON or len(request.headers.getlist("content-type")) != 1:
            raise Refused(415, f"send the body as {_JSON}")
        async with self._bodies.received(request) as body:
            return given | from_body(body, endpoint.body)

    async def _soon(self, endpoint: Endpoint, given: Given) -> bytes:
        """An answer that is hardly older than the question; those who ask at the same time get the same."""
        key, now_s = f"{endpoint.path} {given}", asyncio.get_running_loop().time()
        made_s, making = self._fresh.get(key, (-_FRESH_S, None))
        if making is None or (now_s - made_s >= _FRESH_S and making.done()):
            making = asyncio.create_task(asyncio.to_thread(self._answer, endpoint, given))
            if len(self._fresh) >= _MOST_ANSWERS:
                self._fresh = {name: one for name, one in self._fresh.items() if not one[1].done()}
            self._fresh[key] = now_s, making
        return await asyncio.shield(making)

    async def _asked(self, endpoint: Endpoint, given: Given) -> bytes:
        if self._asking >= _MOST_ASKING:
            raise Refused(429, f"{self._asking} requests wait for jobs; come again in a moment")
        self._asking += 1
        try:
            return await asyncio.to_thread(self._answer, endpoint, given)
        finally:
            self._asking -= 1

    def _answer(self, endpoint: Endpoint, given: Given) -> bytes:
        return to_bytes(endpoint.work(self._jobs, given))

    def _listed(self) -> bytes:
        return to_bytes({"jobs": [summary(job) for job in self._jobs.all()]})


def _json(content: bytes, status: int) -> Response:
    from starlette.responses import Response

    return Response(content, status, media_type=_JSON)


def _with_headers(response: Response) -> Response:
    """With what every answer says; as bytes, as this is done a thousand times a second."""
    own = {name for name, _ in response.raw_headers}
    response.raw_headers.extend(one for one in _ALWAYS if one[0] not in own)
    return response


def _without_clock(content: bytes) -> bytes:
    """What is told again only when it differs: the clock always does."""
    jobs = json.loads(content)["jobs"]
    return json.dumps([{name: one for name, one in job.items() if name != "now_ms"} for job in jobs]).encode()
