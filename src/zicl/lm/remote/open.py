"""Open a model on a server: check permission, find the model, its tokenizer and a backend, open the cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from zicl._util.catalog import OFFLINE
from zicl._util.files import home
from zicl.exceptions import ConfigError, ModelError, ModelNotFoundError, OfflineError, ServerError
from zicl.lm.remote.cache import ScoreCache
from zicl.lm.remote.client import Client
from zicl.lm.remote.model import RemoteLanguageModel
from zicl.lm.remote.probe import probe_server
from zicl.lm.remote.settings import RemoteSettings, ServerAddress, find_api_key, parse_address
from zicl.lm.remote.tokenizer import check_same_tokens, server_tokenizer, tokenizer_identity
from zicl.prompt.tokens import Tokenizer

# Increased when cached answers would no longer mean the same.
_CACHE_FORMAT = 1
# By this name llama.cpp's own server is recognised.
_LLAMA_SERVER = "llamacpp"
_NOT_LLAMA_SERVER = (
    "this is llama.cpp's llama-server, which gives log-likelihoods of generated tokens only: start llama-cpp-python's "
    "server with that file (python -m llama_cpp.server --model FILE --logits_all true), or load it here as gguf:FILE"
)


def open_remote(
    spec: str,
    settings: RemoteSettings | None = None,
    *,
    offline: bool = False,
    load_tokenizer: Callable[[str], Tokenizer],
    sleep: Callable[[float], None] | None = None,
) -> RemoteLanguageModel:
    """Return the model at an address, ready to score; refuse a server that cannot give log-likelihoods."""
    address, settings = parse_address(spec), settings or RemoteSettings()
    _check_permission(address, settings, offline=offline)
    client = Client(address, settings, find_api_key(address), sleep=sleep)
    try:
        with client.fewer_attempts():
            return _open(client, settings, load_tokenizer)
    except BaseException:
        client.close()
        raise


def _check_permission(address: ServerAddress, settings: RemoteSettings, *, offline: bool) -> None:
    """Check that texts may be sent to this address; those sent to a loopback address do not leave the machine."""
    if address.loopback:
        return
    if offline or os.environ.get(OFFLINE):
        raise OfflineError(f"{address.host} is on the network, which --offline excludes", hint="leave out --offline")
    if not settings.allow_text:
        raise ConfigError(
            f"corpus sentences and the texts to be labelled would be sent to {address.host}",
            hint="allow it with --allow-remote-text, if they may leave this machine",
        )


def _open(client: Client, settings: RemoteSettings, load_tokenizer: Callable[[str], Tokenizer]) -> RemoteLanguageModel:
    card = _model_card(client)
    model = str(card["id"])
    shown = ServerAddress(client.address.base, model).shown
    try:
        tokenizer, compared = _tokenizer(client, model, settings, load_tokenizer)
        probed = probe_server(client, model, tokenizer, compared=compared)
    except ModelError as error:
        if card.get("owned_by") == _LLAMA_SERVER:
            error.hint = _NOT_LLAMA_SERVER
        raise
    backend, tokens = probed.backend_names, tokenizer_identity(tokenizer)
    cache_key = f"{_CACHE_FORMAT}|{client.address.base}|{model}|{tokens}|{backend}"
    return RemoteLanguageModel(
        client,
        probed,
        tokenizer,
        ScoreCache(home() / "answers" / "remote.sqlite", cache_key, probed.logprobs),
        name=str(shown),
        identity=hashlib.sha256(f"{model}|{backend}|{tokens}".encode()).hexdigest(),
        revision=f"{shown.model} by {backend}",
        context=settings.context or _context(card),
    )


def _model_card(client: Client) -> dict[str, Any]:
    """Return what the server says about the requested model."""
    requested = client.address.model
    try:
        answer = client.get(f"{client.address.base}/models")
    except ServerError as error:
        if error.status not in (404, 405) or not requested:
            raise
        return {"id": requested}
    listed = answer.get("data") if isinstance(answer, dict) else None
    cards = {str(card["id"]): card for card in listed or [] if isinstance(card, dict) and "id" in card}
    names = [name for name in cards if requested in (name, PurePath(name).name)]
    if not requested and len(cards) == 1:
        names = list(cards)
    if len(names) != 1:
        what = (
            f"there is no model {requested!r}"
            if requested
            else "no model was named, and the server does not have just one"
        )
        raise ModelNotFoundError(
            f"{client.address.host}: {what}",
            hint=f"name one after #: {', '.join(sorted(cards)[:10]) or 'the server lists none'}",
        )
    return cards[names[0]]


def _context(card: dict[str, Any]) -> int | None:
    """Return the length of the longest prompt in tokens; one place is for the token that has to be generated."""
    length = card.get("max_model_len") or card.get("context_length")
    return length - 1 if isinstance(length, int) and length > 1 else None


def _tokenizer(
    client: Client, model: str, settings: RemoteSettings, load_tokenizer: Callable[[str], Tokenizer]
) -> tuple[Tokenizer, bool]:
    """Return the named tokenizer or the server's, and whether it is known to be the same as the server's."""
    remote = server_tokenizer(client, model, f"the server's tokenizer of {model}")
    if settings.tokenizer is None:
        if remote is None:
            raise ModelError(
                f"{client.address.host} has no endpoint for its tokenizer, and no tokenizer was named",
                hint="name the tokenizer of the model: --server tokenizer= a catalog name, hf:ID, folder or gguf:FILE",
            )
        return remote, True
    named = load_tokenizer(settings.tokenizer)
    if remote is not None:
        check_same_tokens(named, remote)
    return named, remote is not None
