"""The bodies of all open requests together are bounded, and what they took is given back."""

import asyncio
import json

import pytest

from zicl.apps.serve.body import RequestBody

SCOPE = {"type": "http", "method": "POST", "path": "/v1/classify", "headers": [(b"content-type", b"application/json")]}


def told(messages):
    """A client that sends these pieces and then waits."""
    pieces = iter(messages)

    async def receive():
        piece, more = next(pieces)
        return {"type": "http.request", "body": piece, "more_body": more}

    return receive


async def ask(body, pieces):
    """What a request is answered."""
    sent = []

    async def send(message):
        sent.append(message)

    await body(SCOPE, told(pieces), send)
    return sent


@pytest.mark.parametrize("pieces", [[(b"x" * 60, False)], [(b"x" * 30, True), (b"x" * 30, False)]])
def test_bodies_are_bounded_together(pieces):
    async def scene():
        inside, leave = asyncio.Event(), asyncio.Event()

        async def app(scope, receive, send):
            inside.set()
            await leave.wait()

        body = RequestBody(app, max_bytes=100, max_requests=9, max_total=100)
        first = asyncio.create_task(ask(body, pieces))
        await inside.wait()
        refused = await ask(body, pieces)
        leave.set()
        await first
        return refused, await ask(body, pieces)

    refused, later = asyncio.run(scene())
    assert refused[0]["status"] == 503
    assert json.loads(refused[1]["body"])["detail"] == "the open requests are too large together"
    assert later == [], "there is room again, and the application answers by itself"


def test_a_single_body_may_take_all_that_is_allowed_it():
    async def app(scope, receive, send):
        await send(await receive())

    found = asyncio.run(ask(RequestBody(app, max_bytes=200, max_requests=9, max_total=100), [(b"x" * 150, False)]))
    assert found[0]["body"] == b"x" * 150
