"""From a ticket to an answer: all results at once or line by line, before the deadline, while the client is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from zicl.apps.serve.problems import BUSY, OVERDUE, STOPPING, RefusedError, refusal
from zicl.apps.serve.queue import Queue, QueueFullError, StoppingError, Ticket, Work

NDJSON = "application/x-ndjson"
# A client that does not read what it is sent is given up so many seconds after its deadline.
_UNREAD_SECONDS = 30.0


class LeftError(Exception):
    """The client is gone: there is nobody to answer."""


def admitted(queue: Queue, works: list[Any]) -> Ticket:
    """A ticket, or a refusal at once."""
    try:
        return queue.admit(works)
    except (QueueFullError, StoppingError) as error:
        raise told(error) from error


def told(error: Exception) -> RefusedError:
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


async def gathered(ticket: Ticket, request: Request, seconds: float) -> list[Any]:
    """All answers of a ticket in their order; the first that failed is raised."""
    gather, leave = asyncio.create_task(_gather(ticket)), asyncio.create_task(_left(request))
    try:
        await asyncio.wait({gather, leave}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if gather.done():
            return gather.result()
        if leave.done():
            raise LeftError
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
            raise told(outcome) if ticket.count == 1 else told(outcome).at(index)
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


class Lines(StreamingResponse):
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
            yield told(outcome).at(index).line + "\n"
            return
        yield outcome.at(index).model_dump_json(exclude_unset=True) + "\n"


async def one(queue: Queue, work: Work, request: Request, seconds: float) -> Any:
    """The answer to a single work."""
    return (await gathered(admitted(queue, [work]), request, seconds))[0]


def nobody() -> Response:
    """What is sent to a client that left: nothing that anyone reads."""
    return Response(status_code=499)
