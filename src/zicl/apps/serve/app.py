"""The application: the addresses of the API, errors as problem documents, and the checks around every request."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from zicl._util.process import __version__
from zicl._util.strict_json import distinct_keys
from zicl.apps.serve import problems, schema
from zicl.apps.serve import queue as metrics
from zicl.apps.serve.body import RequestBody
from zicl.apps.serve.json_problems import not_json
from zicl.apps.serve.page import Page
from zicl.apps.serve.problems import invalid_request, refusal, status_refusal
from zicl.apps.serve.security import Access, AccessGuard, SecurityHeaders
from zicl.apps.serve.service import NDJSON, ClientLeftError, Service
from zicl.exceptions import ZICLError

if TYPE_CHECKING:
    from zicl.apps.serve.long_jobs import FitJob, MapJob

# What each address takes as its body.
_REQUESTS: Mapping[str, type[BaseModel]] = {
    "/v1/classify": schema.ClassifyRequest,
    "/v1/fit": schema.FitRequest,
    "/v1/map": schema.MapRequest,
    "/v1/retrieve": schema.RetrieveRequest,
    "/v1/synonyms": schema.SynonymsRequest,
}
_STATUSES = {
    400: "The body is not JSON.",
    401: "A token is needed.",
    403: "Another Host or Origin.",
    404: "There is no such thing.",
    405: "Another method is expected.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not declared as JSON, or is compressed.",
    422: "A value cannot be used, or is over a limit.",
    503: "Busy, overdue, starting or stopping; Retry-After says when to try again.",
}
_BODY_STATUSES = (400, 408, 413, 415, 422)
_PROBLEM = {"content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_RETRY_AFTER = {"headers": {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}}


def _stream(description: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": description, "content": {NDJSON: {"schema": {"type": "string"}}}}}


_RESULTS = _stream("All results; or a stream of one ResultOut per line, with a Problem last if one fails.")
_PROGRESS = _stream("The answer; or a stream of ProgressLine, with the answer, or a Problem, last.")


def make_app(service: Service, access: Access, page: Page) -> ASGIApp:
    """Return the application. The order matters: no body is read before the request is allowed."""
    limits = service.limits
    api = _make_api(service, page)
    inner = RequestBody(api, max_bytes=limits.body, max_requests=limits.queue, addresses=_REQUESTS)
    return _HeadAsGet(SecurityHeaders(AccessGuard(inner, access, page), service.metrics))


class _HeadAsGet:
    """Answer HEAD as GET: the server leaves the body out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; a copy, because the server decides by the method that was sent."""
        head = scope["type"] == "http" and scope["method"] == "HEAD"
        await self._app({**scope, "method": "GET"} if head else scope, receive, send)


class _StrictRequest(Request):
    """A request whose body has each key once: of two values, the framework would take the last."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            return json.loads(body, object_pairs_hook=distinct_keys)
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            # The framework would not say why it could not read the body.
            raise not_json(error, body) from error


class _StrictRoute(APIRoute):
    """A route that reads its requests so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


class _API(FastAPI):
    """FastAPI, with the schema of problem documents: no route returns one, so FastAPI does not add it."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        document.setdefault("components", {}).setdefault("schemas", {})["Problem"] = schema.Problem.model_json_schema()
        return document


def _make_api(service: Service, page: Page) -> FastAPI:
    api = _API(
        title="zicl",
        version=__version__,
        summary="Classify texts with nothing but labels and unlabelled texts, and see why.",
        # The interactive docs would load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        # A redirect would repeat whatever name the client gave in Host.
        redirect_slashes=False,
        lifespan=service.running,
        separate_input_output_schemas=False,
    )
    api.router.route_class = _StrictRoute
    for error in (problems.RefusedError, ZICLError, Exception):
        api.add_exception_handler(error, _answer_refusal)
    api.add_exception_handler(ClientLeftError, _answer_nothing)
    api.add_exception_handler(RequestValidationError, _answer_invalid)
    api.add_exception_handler(HTTPException, _answer_status)
    _add_page_and_health(api, service, page)
    _add_classify(api, service)
    _add_piles(api, service)
    _add_corpus(api, service)
    return api


def _add_page_and_health(api: FastAPI, service: Service, page: Page) -> None:
    @api.get("/", include_in_schema=False)
    async def index() -> Response:
        return page.response()

    @api.get("/healthz", responses=_problems())
    async def healthz() -> schema.HealthResponse:
        """Whether the server runs."""
        return schema.HealthResponse(status="ok")

    @api.get("/readyz", responses=_problems())
    async def readyz() -> schema.HealthResponse:
        """Whether the models are loaded and requests are taken."""
        _ = service.engine
        return schema.HealthResponse(status="ok")

    @api.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **_problems()},
    )
    async def counters() -> Response:
        """Counters for Prometheus."""
        return Response(service.metrics.text(), media_type=metrics.MEDIA_TYPE)

    @api.get("/v1/info", responses=_problems())
    async def info() -> schema.InfoResponse:
        """What runs here: corpus, encoder, language model, versions, settings and limits."""
        return service.engine.info


def _add_classify(api: FastAPI, service: Service) -> None:
    @api.post(
        "/v1/classify",
        response_model=schema.ClassifyResponse,
        responses={**_RESULTS, **_problems(404, *_BODY_STATUSES)},
    )
    async def classify(body: schema.ClassifyRequest, request: Request) -> Response:
        """Label one text or many."""
        jobs = service.engine.classify(body)
        if _wants_stream(body, request):
            return service.stream(jobs)
        answers = await service.answer_all(jobs, request)
        results = [answer.at(index) for index, answer in enumerate(answers)]
        return _json(schema.ClassifyResponse(results=results, settings=answers[0].settings))


def _add_piles(api: FastAPI, service: Service) -> None:
    async def answer(job: FitJob | MapJob, *, stream: bool, request: Request) -> Response:
        return service.stream([job]) if stream else _json((await service.answer_one(job, request)).response)

    responses = {**_PROGRESS, **_problems(*_BODY_STATUSES)}

    @api.post("/v1/fit", response_model=schema.FitResponse, responses=responses)
    async def fit(body: schema.FitRequest, request: Request) -> Response:
        """Learn from unlabelled texts, for requests of /v1/classify that name what was learned."""
        return await answer(service.engine.fit(body), stream=_wants_stream(body, request), request=request)

    @api.post("/v1/map", response_model=schema.MapResponse, responses=responses)
    async def lay_out(body: schema.MapRequest, request: Request) -> Response:
        """Texts in two dimensions, where similar ones are neighbours."""
        return await answer(service.engine.map(body), stream=_wants_stream(body, request), request=request)


def _wants_stream(body: schema.ClassifyRequest | schema.FitRequest | schema.MapRequest, request: Request) -> bool:
    return body.stream or NDJSON in request.headers.get("accept", "")


def _add_corpus(api: FastAPI, service: Service) -> None:
    @api.post("/v1/retrieve", response_model=schema.RetrieveResponse, responses=_problems(404, *_BODY_STATUSES))
    async def retrieve(body: schema.RetrieveRequest, request: Request) -> Response:
        """The sentences a text would be given as demonstrations, nearest first."""
        return _json((await service.answer_one(service.engine.retrieve(body), request)).response)

    @api.post("/v1/synonyms", response_model=schema.SynonymsResponse, responses=_problems(*_BODY_STATUSES))
    async def synonyms(body: schema.SynonymsRequest, request: Request) -> Response:
        """Synonyms that demonstrations can show instead of labels."""
        return _json((await service.answer_one(service.engine.synonyms(body), request)).response)

    @api.get("/v1/paragraph/{row}", responses=_problems(404, 422))
    async def paragraph(row: int) -> schema.ParagraphResponse:
        """The paragraph that contains a sentence of the corpus."""
        return service.engine.paragraph(row)


def _problems(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of the problems that any route may answer with, and of more."""
    statuses = sorted({401, 403, 405, 503, *more})
    return {s: {"description": _STATUSES[s], **_PROBLEM, **(_RETRY_AFTER if s == 503 else {})} for s in statuses}


def _json(model: BaseModel) -> Response:
    return Response(model.model_dump_json(exclude_unset=True), media_type="application/json")


async def _answer_refusal(_request: Request, error: Exception) -> Response:
    return refusal(error).response()


async def _answer_nothing(_request: Request, _error: Exception) -> Response:
    # The client has left and reads nothing; the status is for the counters.
    return Response(status_code=499)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    invalid = cast(RequestValidationError, error)
    return invalid_request(invalid.errors(), _REQUESTS.get(request.url.path), invalid.body).response()


async def _answer_status(_request: Request, error: Exception) -> Response:
    refused = cast(HTTPException, error)
    if isinstance(refused.__cause__, problems.RefusedError):
        return refused.__cause__.response()
    return status_refusal(refused.status_code, refused.headers or {}).response()
