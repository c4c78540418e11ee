"""Requests generated from the OpenAPI document, and broken ones: a 4xx or the documented 503, never another 5xx."""

import httpx2 as httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.apps.serve.conftest import listening
from tests.waiting import WAIT_SECONDS
from zicl.apps.serve.limits import RequestLimits


def no_mistake_of_the_server(ctx, response, case):
    assert response.status_code < 500 or response.status_code == 503


CHECKS = [no_mistake_of_the_server, status_code_conformance, content_type_conformance, response_schema_conformance]
QUICK = settings(
    max_examples=64, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def address(classifier):
    with listening(classifier, RequestLimits(labels=8, k=8)) as (found, _):
        yield found


def test_generated_requests_never_break_the_server(address):
    document = schemathesis.openapi.from_url(f"{address}/openapi.json")
    count, session = 0, requests.Session()
    for found in document.get_all_operations():
        operation = found.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.NEGATIVE and operation.method == "get" and "row" not in operation.path:
                continue

            @QUICK
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case):
                nonlocal count
                count += 1
                case.call_and_validate(base_url=address, session=session, checks=CHECKS, timeout=WAIT_SECONDS)

            ask()
    assert count >= 500


BYTES = st.binary(max_size=200) | st.text(max_size=100).map(str.encode)


@pytest.fixture(scope="module")
def client(address):
    with httpx.Client(base_url=address, headers={"Content-Type": "application/json"}, timeout=WAIT_SECONDS) as found:
        yield found


@settings(QUICK, max_examples=150)
@given(body=BYTES, path=st.sampled_from(["classify", "fit", "map", "retrieve", "synonyms"]))
def test_bytes_of_any_kind_are_answered(client, body, path):
    answer = client.post(f"/v1/{path}", content=body)
    assert 400 <= answer.status_code < 500
    assert answer.headers["Content-Type"] == "application/problem+json"
