"""The API as OpenAPI describes it, made of the table of its endpoints."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from headwater.web.endpoints import ENDPOINTS, Endpoint
from headwater.web.fields import Field
from headwater.web.schemas import ANSWERS

_REFUSALS = {
    400: "the request is not as described",
    401: "the token is missing or wrong",
    403: "a page of another site has asked",
    404: "there is no such job",
    409: "the job cannot do that now",
    413: "the body is too large",
    415: "the body is not JSON",
    421: "the host is called by another name",
    429: "too many requests are being worked on",
    500: "a file of the job cannot be read",
}


def description() -> dict[str, Any]:
    """The document."""
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    paths["/api/events"] = {"get": _events()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headwater",
            "version": importlib.metadata.version("headwater"),
            "description": "Jobs seen and steered. Every request shows the token that the server printed.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": ANSWERS,
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [
            *(_parameter(field, "path") for field in endpoint.in_path),
            *(_parameter(field, "query") for field in endpoint.query),
        ],
        "responses": {
            str(endpoint.status): _response("as asked for", endpoint.answer),
            **{str(status): _response(text, "Error") for status, text in _REFUSALS.items()},
        },
    }
    if endpoint.method == "POST":
        schema = {
            "type": "object",
            "properties": {field.name: {**field.schema(), "description": field.about} for field in endpoint.body},
            "required": [field.name for field in endpoint.body if field.is_required],
            "additionalProperties": False,
        }
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def _parameter(field: Field, place: str) -> dict[str, Any]:
    return {
        "name": field.name,
        "in": place,
        "required": field.is_required,
        "description": field.about,
        "schema": field.schema(),
    }


def _response(text: str, name: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _events() -> dict[str, Any]:
    return {
        "operationId": "get_events",
        "summary": "What GET /api/jobs gives, again whenever it changes, as server-sent events",
        "responses": {
            "200": {"description": "a stream", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            **{str(status): _response(_REFUSALS[status], "Error") for status in (401, 403, 421, 429)},
        },
    }
