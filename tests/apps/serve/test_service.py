import asyncio

from tests.waiting import WAIT_SECONDS
from zicl.apps.serve import service
from zicl.apps.serve.queue import Ticket
from zicl.apps.serve.service import LineStream


class Line:
    def at(self, index):
        return self

    def model_dump_json(self, **_):
        return "{}"


def test_a_client_that_never_reads_is_given_up(monkeypatch):
    monkeypatch.setattr(service, "_UNREAD_SECONDS", 0.1)
    left = []

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        if message["type"] == "http.response.body":
            # The other side's window is full, and stays so.
            await asyncio.Event().wait()

    async def run():
        ticket = Ticket(2, left.append)
        ticket.done.put_nowait((0, Line()))
        scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
        await asyncio.wait_for(LineStream(ticket, 0.1)(scope, receive, send), WAIT_SECONDS)
        return ticket

    assert left == [asyncio.run(run())]
