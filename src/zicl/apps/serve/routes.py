"""The addresses of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from zicl.apps.serve import metrics, problems, schema
from zicl.apps.serve.answers import NDJSON, Lines, admitted, gathered, one
from zicl.apps.serve.page import Page
from zicl.apps.serve.service import Service

_PROBLEM = {"content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_STATUSES = {
    400: "The body is not JSON.",
    401: "A token is needed.",
    403: "Another Host or Origin.",
    404: "There is no such thing.",
    405: "Another method is expected.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "A value cannot be used, or is over a limit.",
    503: "Busy, overdue, starting or stopping; Retry-After says when to try again.",
}
_RETRY_AFTER = {"headers": {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}}


def _problems(*more: int) -> dict[int | str, dict[str, Any]]:
    """The problems any route may answer with, and some routes' own."""
    found = sorted({401, 403, 405, 503, *more})
    return {s: {"description": _STATUSES[s], **_PROBLEM, **(_RETRY_AFTER if s == 503 else {})} for s in found}


# What each address takes.
REQUESTS: Mapping[str, type[BaseModel]] = {
    "/v1/classify": schema.ClassifyRequest,
    "/v1/retrieve": schema.RetrieveRequest,
    "/v1/synonyms": schema.SynonymsRequest,
}
_READS_BODY = (400, 408, 413, 415, 422)
_TWO_FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "All results; or as a stream, a ResultOut a line as each is done, a Problem last if one fails.",
        "content": {NDJSON: {"schema": {"type": "string"}}},
    }
}


def make_router(service: Service, page: Page) -> APIRouter:
    """All routes of one server."""
    router = APIRouter()
    for add in (_page_route, _health_routes, _classify_route, _corpus_routes):
        add(router, service, page)
    return router


def _page_route(router: APIRouter, _service: Service, page: Page) -> None:
    @router.get("/", include_in_schema=False)
    async def index() -> Response:
        return page.response()


def _health_routes(router: APIRouter, service: Service, _page: Page) -> None:
    @router.get("/healthz", responses=_problems())
    async def healthz() -> schema.HealthResponse:
        """Whether the server runs."""
        return schema.HealthResponse(status="ok")

    @router.get("/readyz", responses=_problems())
    async def readyz() -> schema.HealthResponse:
        """Whether the models are loaded and requests are taken."""
        _ = service.engine
        return schema.HealthResponse(status="ok")

    @router.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **_problems()},
    )
    async def counters() -> Response:
        """Counters for Prometheus."""
        return Response(service.metrics.text(), media_type=metrics.MEDIA_TYPE)

    @router.get("/v1/info", responses=_problems())
    async def info() -> schema.InfoResponse:
        """What runs here: corpus, encoder, language model, versions, settings and limits."""
        return service.engine.info


def _classify_route(router: APIRouter, service: Service, _page: Page) -> None:
    @router.post(
        "/v1/classify",
        response_model=schema.ClassifyResponse,
        responses={**_TWO_FORMS, **_problems(*_READS_BODY)},
    )
    async def classify(asked: schema.ClassifyRequest, request: Request) -> Response:
        """Label one text or many."""
        works, deadline = service.engine.classify(asked), service.limits.deadline
        ticket = admitted(service.queue, works)
        if asked.stream or NDJSON in request.headers.get("accept", ""):
            return Lines(ticket, deadline)
        done = await gathered(ticket, request, deadline)
        results = [each.at(number) for number, each in enumerate(done)]
        return _json(schema.ClassifyResponse(results=results, settings=done[0].settings))


def _corpus_routes(router: APIRouter, service: Service, _page: Page) -> None:
    @router.post("/v1/retrieve", response_model=schema.RetrieveResponse, responses=_problems(404, *_READS_BODY))
    async def retrieve(asked: schema.RetrieveRequest, request: Request) -> Response:
        """The sentences a text would be given as demonstrations, nearest first."""
        found = await one(service.queue, service.engine.retrieve(asked), request, service.limits.deadline)
        return _json(found.response)

    @router.post("/v1/synonyms", response_model=schema.SynonymsResponse, responses=_problems(*_READS_BODY))
    async def synonyms(asked: schema.SynonymsRequest, request: Request) -> Response:
        """Synonyms that may stand for labels in demonstrations."""
        found = await one(service.queue, service.engine.synonyms(asked), request, service.limits.deadline)
        return _json(found.response)

    @router.get("/v1/paragraph/{row}", responses=_problems(404, 422))
    async def paragraph(row: int) -> schema.ParagraphResponse:
        """The paragraph that a sentence of the corpus stands in."""
        return service.engine.paragraph(row)


def _json(model: BaseModel) -> Response:
    return Response(model.model_dump_json(exclude_unset=True), media_type="application/json")
