"""The application: routes inside, and around them what bounds, guards and counts every request."""

from __future__ import annotations

from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from zicl._util.process import __version__
from zicl.apps.serve import schema
from zicl.apps.serve.body import RequestBody
from zicl.apps.serve.page import Page
from zicl.apps.serve.problems import RefusedError, of_status, refusal
from zicl.apps.serve.routes import REQUESTS, ClientLeftError, make_router, no_content
from zicl.apps.serve.security import Access, AccessGuard, SecurityHeaders
from zicl.apps.serve.service import Service
from zicl.apps.serve.validation_errors import invalid_request
from zicl.exceptions import ZICLError


def make_app(service: Service, access: Access, page: Page) -> ASGIApp:
    """The whole application. The order matters: nothing is read before it is allowed."""
    limits = service.limits
    inner = RequestBody(_api(service, page), most=limits.body, requests=limits.queue, addresses=REQUESTS)
    return SecurityHeaders(AccessGuard(inner, access, page), service.metrics)


class _Described(FastAPI):
    """The routes name the schema of problems; it is not any route's answer, so it is put into the document by hand."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        document.setdefault("components", {}).setdefault("schemas", {})["Problem"] = schema.Problem.model_json_schema()
        return document


def _api(service: Service, page: Page) -> FastAPI:
    # The interactive docs would load scripts from elsewhere: they are left out.
    api = _Described(
        title="zicl",
        version=__version__,
        summary="Classify texts with pseudo-demonstrations from a raw corpus, and see why.",
        docs_url=None,
        redoc_url=None,
        # A redirect would repeat whatever name the client gave in Host.
        redirect_slashes=False,
        lifespan=service.running,
        separate_input_output_schemas=False,
    )
    api.include_router(make_router(service, page))
    for kind, answer in (
        (RefusedError, _refused),
        (ZICLError, _refused),
        (ClientLeftError, _left),
        (Exception, _refused),
    ):
        api.add_exception_handler(kind, answer)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _http)
    return api


async def _refused(_request: Request, error: Exception) -> Response:
    return refusal(error).response()


async def _left(_request: Request, _error: Exception) -> Response:
    return no_content()


async def _invalid(request: Request, error: Exception) -> Response:
    found = cast(RequestValidationError, error)
    return invalid_request(found.errors(), REQUESTS.get(request.url.path), found.body).response()


async def _http(_request: Request, error: Exception) -> Response:
    found = cast(HTTPException, error)
    return of_status(found.status_code, dict(found.headers or {})).response()
