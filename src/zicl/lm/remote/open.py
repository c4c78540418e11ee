"""From an address to a language model: permission, model, tokenizer, probe, cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from zicl._util.catalog import OFFLINE
from zicl._util.files import home
from zicl.exceptions import ConfigError, ModelError, ModelNotFoundError, OfflineError, ServerError
from zicl.lm.remote.address import Address, parse
from zicl.lm.remote.cache import Answers
from zicl.lm.remote.client import Client
from zicl.lm.remote.model import RemoteLanguageModel
from zicl.lm.remote.probe import probe
from zicl.lm.remote.secret import find_secret
from zicl.lm.remote.settings import RemoteSettings
from zicl.lm.remote.tokenizer import compare, identity, server_tokenizer
from zicl.prompt.tokens import Tokenizer

# Raised when what is stored would no longer mean the same.
_FORMAT = 1


def open_remote(
    spec: str,
    settings: RemoteSettings | None = None,
    *,
    offline: bool = False,
    load_tokenizer: Callable[[str], Tokenizer],
    sleep: Callable[[float], object] | None = None,
) -> RemoteLanguageModel:
    """The model at an address, ready to score; refused if it cannot give log-likelihoods."""
    address, settings = parse(spec), settings or RemoteSettings()
    _permitted(address, settings, offline=offline)
    client = Client(address, settings, find_secret(address), sleep=sleep)
    try:
        with client.hurried():
            return _opened(client, settings, load_tokenizer)
    except BaseException:
        client.close()
        raise


def _permitted(address: Address, settings: RemoteSettings, *, offline: bool) -> None:
    """What is sent to this machine's own loopback address does not leave it; all else needs a yes."""
    if address.loopback:
        return
    if offline or os.environ.get(OFFLINE):
        raise OfflineError(f"{address.host} is on the network, which was ruled out", hint="leave out --offline")
    if not settings.allow_text:
        raise ConfigError(
            f"corpus sentences and the texts to be labelled would be sent to {address.host}",
            hint="if they may leave this machine, say so: --allow-remote-text",
        )


def _opened(
    client: Client, settings: RemoteSettings, load_tokenizer: Callable[[str], Tokenizer]
) -> RemoteLanguageModel:
    card = _model_card(client)
    model = str(card["id"])
    shown = Address(client.address.base, model).shown
    tokenizer, compared = _tokenizer(client, model, settings, load_tokenizer)
    found = probe(client, model, tokenizer, compared=compared)
    who = f"{_FORMAT}|{client.address.base}|{model}|{identity(tokenizer)}"
    return RemoteLanguageModel(
        client,
        found,
        tokenizer,
        Answers(home() / "answers" / "remote.sqlite", f"{who}|{found.way}", found.probe),
        name=str(shown),
        identity=hashlib.sha256(f"{model}|{found.way}|{identity(tokenizer)}".encode()).hexdigest(),
        revision=f"{shown.model} by {found.way}",
        context=settings.context or _context(card),
    )


def _model_card(client: Client) -> dict[str, Any]:
    """What the server says of the model that was asked for."""
    wanted = client.address.model
    try:
        answer = client.get(f"{client.address.base}/models")
    except ServerError as error:
        if error.status not in (404, 405) or not wanted:
            raise
        return {"id": wanted}
    listed = answer.get("data") if isinstance(answer, dict) else None
    cards = {str(c["id"]): c for c in listed or [] if isinstance(c, dict) and "id" in c}
    named = [name for name in cards if wanted in (name, PurePath(name).name)]
    if not wanted and len(cards) == 1:
        named = list(cards)
    if len(named) != 1:
        what = f"no model {wanted!r}" if wanted else "no model was named, and the server has not exactly one"
        raise ModelNotFoundError(
            f"{client.address.host}: {what}",
            hint=f"name one behind #: {', '.join(sorted(cards)[:10]) or 'the server lists none'}",
        )
    return cards[named[0]]


def _context(card: dict[str, Any]) -> int | None:
    """The tokens a prompt may have: one place is for the token that has to be asked for."""
    found = card.get("max_model_len") or card.get("context_length")
    return found - 1 if isinstance(found, int) and found > 1 else None


def _tokenizer(
    client: Client, model: str, settings: RemoteSettings, load_tokenizer: Callable[[str], Tokenizer]
) -> tuple[Tokenizer, bool]:
    """The named tokenizer or the server's own, and whether it is known to be the server's."""
    own = server_tokenizer(client, model, f"the server's own tokenizer of {model}")
    if settings.tokenizer is None:
        if own is None:
            raise ModelError(
                f"{client.address.host} does not let one ask for tokens, and no tokenizer was named",
                hint="name the model's tokenizer: --tokenizer with a catalog name, hf:ID, folder or gguf:FILE",
            )
        return own, True
    named = load_tokenizer(settings.tokenizer)
    if own is not None:
        compare(named, own)
    return named, own is not None
