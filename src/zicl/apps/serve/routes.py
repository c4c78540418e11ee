"""From a ticket to an answer: all results at once or line by line, before the deadline, while the client is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from zicl.apps.serve import problems, schema
from zicl.apps.serve import queue as metrics
from zicl.apps.serve.page import Page
from zicl.apps.serve.problems import BUSY, OVERDUE, STOPPING, RefusedError, refusal
from zicl.apps.serve.queue import Queue, QueuedWork, QueueFullError, StoppingError, Ticket
from zicl.apps.serve.service import Service

NDJSON = "application/x-ndjson"
# A client that does not read what it is sent is given up so many seconds after its deadline.
_UNREAD_SECONDS = 30.0


class ClientLeftError(Exception):
    """The client is gone: there is nobody to answer."""


def admit(queue: Queue, works: list[Any]) -> Ticket:
    """A ticket, or a refusal at once."""
    try:
        return queue.admit(works)
    except (QueueFullError, StoppingError) as error:
        raise answer_all(error) from error


def answer_all(error: Exception) -> RefusedError:
    """What went wrong with a work, in words for its client."""
    if isinstance(error, QueueFullError):
        return RefusedError(
            BUSY,
            f"{error.waiting:,} of {error.places:,} places in the queue are taken",
            expected="as many free places as the request has texts",
            hint="try again after the time that Retry-After names, or send fewer texts",
            retry_after=min(error.seconds, 60.0),
        )
    if isinstance(error, StoppingError):
        return RefusedError(
            STOPPING, "the server is stopping and begins nothing more", hint="ask again when it is back", retry_after=10
        )
    return refusal(error)


async def gather_results(ticket: Ticket, request: Request, seconds: float) -> list[Any]:
    """All answers of a ticket in their order; the first that failed is raised."""
    gather, leave = asyncio.create_task(_gather(ticket)), asyncio.create_task(_left(request))
    try:
        await asyncio.wait({gather, leave}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if gather.done():
            return gather.result()
        if leave.done():
            raise ClientLeftError
        raise _overdue(seconds)
    finally:
        gather.cancel()
        leave.cancel()
        ticket.close()


async def _gather(ticket: Ticket) -> list[Any]:
    found: list[Any] = [None] * ticket.count
    for _ in range(ticket.count):
        index, outcome = await ticket.next()
        if isinstance(outcome, Exception):
            raise answer_all(outcome) if ticket.count == 1 else answer_all(outcome).at(index)
        found[index] = outcome
    return found


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _overdue(seconds: float) -> RefusedError:
    return RefusedError(
        OVERDUE,
        f"the answer was not there after {seconds:g} seconds",
        hint="send fewer texts a request, take them as a stream, or try again when fewer clients ask",
        retry_after=10,
    )


class LineStream(StreamingResponse):
    """Results as lines of JSON, each as it is done; if something fails, the problem is the last line."""

    def __init__(self, ticket: Ticket, seconds: float) -> None:
        self._ticket, self._seconds = ticket, seconds + _UNREAD_SECONDS
        super().__init__(_lines(ticket, seconds), media_type=NDJSON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and free the places whatever happens: a client may leave before the first line, or never read one."""
        try:
            async with asyncio.timeout(self._seconds):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            # An answer that is not whole: the server hangs up.
            return
        finally:
            self._ticket.close()


async def _lines(ticket: Ticket, seconds: float) -> AsyncIterator[str]:
    end = time.monotonic() + seconds
    for _ in range(ticket.count):
        try:
            index, outcome = await ticket.next(max(0.0, end - time.monotonic()))
        except TimeoutError:
            yield _overdue(seconds).line + "\n"
            return
        if isinstance(outcome, Exception):
            yield answer_all(outcome).at(index).line + "\n"
            return
        yield outcome.at(index).model_dump_json(exclude_unset=True) + "\n"


async def one(queue: Queue, work: QueuedWork, request: Request, seconds: float) -> Any:
    """The answer to a single work."""
    return (await gather_results(admit(queue, [work]), request, seconds))[0]


def no_content() -> Response:
    """What is sent to a client that left: nothing that anyone reads."""
    return Response(status_code=499)


# -- The addresses of the API.


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
        ticket = admit(service.queue, works)
        if asked.stream or NDJSON in request.headers.get("accept", ""):
            return LineStream(ticket, deadline)
        done = await gather_results(ticket, request, deadline)
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
