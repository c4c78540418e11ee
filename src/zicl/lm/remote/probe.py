"""Which way a server gives log-likelihoods, found by asking it about a text whose tokens are known.

A way is taken only if it splits the text as the tokenizer does, gives a number for every token, and gives different
continuations different numbers. What it cannot do becomes the reason of the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from zicl.exceptions import ServerError, TokenizationError, ZICLError
from zicl.lm.remote.backends.base import LogprobBackend, ResponseReader, TokenSplit
from zicl.lm.remote.backends.echo import EchoBackend, Form
from zicl.lm.remote.backends.sglang import GenerateBackend
from zicl.lm.remote.backends.vllm import NextTokenBackend, PromptLogprobsBackend
from zicl.lm.remote.client import Client
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs
from zicl.prompt.tokens import Segment, Tokenizer

# Written for this purpose. Lines end in letters, so that no tokenizer joins their end with the line break.
_GIVEN = "Place: the kitchen\nThing: a kettle\n\n\nPlace: the harbour"
_CONTINUED = ("\nThing: an old boat", "\nThing: seven purple of of")
_DIFFERENT, _EQUAL = 1e-3, 0.05

NEEDED = (
    "what works: vLLM (prompt_logprobs), SGLang (/generate), llama-cpp-python's server (with --logits_all true), or "
    "another server whose /completions takes echo with logprobs, as davinci-002 does; chat interfaces do not"
)


@dataclass(frozen=True)
class ProbeResult:
    """What a server can do. ``whole`` scores any text, ``following`` next tokens; one of them is there."""

    whole: LogprobBackend | None
    following: ResponseReader | None
    adds_bos: bool
    probe: TokenLogprobs

    @property
    def way(self) -> str:
        """The names of what is used."""
        return " + ".join(reader.name for reader in (self.whole, self.following) if reader is not None)


class WrongTokenizerError(TokenizationError):
    """The tokenizer is not the server's: so it is for every way."""


def probe_server(client: Client, model: str, tokenizer: Tokenizer, *, compared: bool = False) -> ProbeResult:
    """Ask until a way works; refuse a server that has none.

    ``compared`` says that the tokenizer was found to be the server's already, which next tokens alone cannot show.
    """
    reasons: list[str] = []
    for attempt in _attempts(client, model, tokenizer):
        try:
            whole, adds_bos = attempt()
        except (ServerError, TokenizationError) as error:
            _raise_if_for_all(error)
            reasons.append(error.message)
            continue
        numbers = _different(whole, _questions(tokenizer, adds_bos=adds_bos))
        following = None
        if isinstance(whole, PromptLogprobsBackend):
            following = _following(client, model, tokenizer, adds_bos, numbers)
        return ProbeResult(whole, following, adds_bos, numbers)
    adds_bos = _own_rule(tokenizer)
    following = _following(client, model, tokenizer, adds_bos, None) if compared else None
    if following is None:
        raise ServerError(
            f"{client.address.host} gives no log-likelihoods for {model!r}: {'; '.join(dict.fromkeys(reasons))}",
            hint=NEEDED,
        )
    return ProbeResult(None, following, adds_bos, following.read(_next_question(tokenizer, adds_bos=adds_bos)))


def _raise_if_for_all(error: ZICLError) -> None:
    """A server that is out of reach, wants a key or has another tokenizer is so for every way."""
    out_of_reach = isinstance(error, ServerError) and (not error.reached or error.status in (401, 402, 403, 429))
    if out_of_reach or isinstance(error, WrongTokenizerError):
        raise error


def _attempts(client: Client, model: str, tokenizer: Tokenizer) -> Iterator[Callable[[], tuple[LogprobBackend, bool]]]:
    """The ways, best first: those that name tokens by number cannot be misread."""
    yield lambda: _by_number(PromptLogprobsBackend(client, model), tokenizer)
    yield lambda: _by_number(GenerateBackend(client), tokenizer)
    yield lambda: _echo(client, model, "tokens", tokenizer)
    yield lambda: _echo(client, model, "text", tokenizer)
    yield lambda: _echo(client, model, "text behind bos", tokenizer)


def _by_number(way: LogprobBackend, tokenizer: Tokenizer) -> tuple[LogprobBackend, bool]:
    """The server gets numbers only, so whether a first token is among them is the tokenizer's own rule."""
    same_after_first_line(tokenizer, way.split(_GIVEN), _GIVEN)
    adds_bos = _own_rule(tokenizer)
    _different(way, _questions(tokenizer, adds_bos=adds_bos))
    return way, adds_bos


def _echo(client: Client, model: str, form: Form, tokenizer: Tokenizer) -> tuple[LogprobBackend, bool]:
    server_adds = same_tokenizer(tokenizer, EchoBackend(client, model, "text").split(_GIVEN), _GIVEN)
    adds_bos, bos = server_adds, None
    if form == "text behind bos":
        if server_adds or tokenizer.bos is None:
            raise ServerError("there is no other beginning-of-sequence token to put first")
        adds_bos = True
    if adds_bos and form != "tokens" and tokenizer.bos is not None:
        bos = (tokenizer.bos, tokenizer.decode((tokenizer.bos,)))
    way = EchoBackend(client, model, form, bos)
    questions = _questions(tokenizer, adds_bos=adds_bos)
    _different(way, questions)
    whole = questions[0].given.tokens + questions[0].wanted.tokens
    if form == "tokens" and not _agree(tokenizer, way.ask(questions[0]).tokens, whole):
        raise ServerError(f"{client.address.host} repeats other tokens than the numbers it was given")
    # The most likely token at a place does not depend on which one stands there. Where it does, the numbers belong
    # to the token after it: so does llama-cpp-python without a first token that it can leave out.
    best = [way.best_next(question) for question in _forked(tokenizer, questions)]
    if abs(best[0] - best[1]) > _EQUAL:
        raise ServerError(f"{client.address.host} gives log-likelihoods that are one token off in its {way.name}")
    return way, adds_bos


def same_tokenizer(tokenizer: Tokenizer, found: TokenSplit, text: str) -> bool:
    """Whether the server puts a first token before a text; an error if it splits the text otherwise than we do."""
    own = tokenizer.encode(text)
    if found.count == len(own) and _agree(tokenizer, found.tokens, own):
        return False
    if tokenizer.bos is not None and found.count == len(own) + 1:
        shown = (tokenizer.bos, *own) if len(found.tokens) == found.count else own
        if _agree(tokenizer, found.tokens, shown):
            return True
    raise _wrong_tokenizer(tokenizer, len(own), found.count)


def same_after_first_line(tokenizer: Tokenizer, found: TokenSplit, text: str) -> None:
    """An error if the server splits the text otherwise than we do.

    The first line is only counted: some tokenizers put a space before a text, which ours leave out, and some a token.
    """
    start = text.index("\n")
    head, tail = tokenizer.encode(text[:start]), tokenizer.encode(text[start:])
    before = found.count - len(tail)
    if not len(head) - 1 <= before <= len(head) + 2 or not _agree(tokenizer, found.tokens[before:], tail):
        raise _wrong_tokenizer(tokenizer, len(head) + len(tail), found.count)


def _wrong_tokenizer(tokenizer: Tokenizer, ours: int, theirs: int) -> WrongTokenizerError:
    return WrongTokenizerError(
        f"{tokenizer.name} is not the server's tokenizer: it makes {ours} tokens of a text of which the server "
        f"makes {theirs}, or others",
        hint="name the model's own tokenizer with --tokenizer (a catalog name, hf:ID, folder or gguf:FILE)",
    )


def _own_rule(tokenizer: Tokenizer) -> bool:
    return bool(getattr(tokenizer, "adds_bos", lambda: False)())


def _agree(tokenizer: Tokenizer, found: Sequence[int | str | None], own: Sequence[int]) -> bool:
    """Numbers are compared as numbers, texts as texts; what the server does not say is passed over."""
    if len(found) != len(own):
        return False
    pairs = zip(found, own, strict=True)
    return all(a is None or (a == b if isinstance(a, int) else a == tokenizer.decode((b,))) for a, b in pairs)


def _questions(tokenizer: Tokenizer, *, adds_bos: bool) -> list[ScoreRequest]:
    given = Segment(_GIVEN, tokenizer.encode(_GIVEN))
    if adds_bos and tokenizer.bos is not None:
        given = Segment("", (tokenizer.bos,)) + given
    return [ScoreRequest(given, Segment(text, tokenizer.encode(text))) for text in _CONTINUED]


def _forked(tokenizer: Tokenizer, questions: list[ScoreRequest]) -> list[ScoreRequest]:
    """The questions with what they share moved to the given part: their first wanted tokens differ."""
    first, second = (question.wanted.tokens for question in questions)
    shared = next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    front, *rest = (Segment(tokenizer.decode(part), part) for part in (first[:shared], first[shared:], second[shared:]))
    return [ScoreRequest(questions[0].given + front, own) for own in rest]


def _different(way: ResponseReader, questions: list[ScoreRequest]) -> TokenLogprobs:
    first, second = (way.read(question) for question in questions)
    if abs(sum(first) / len(first) - sum(second) / len(second)) < _DIFFERENT:
        raise ServerError(f"{way.name} scores different texts alike", hint=NEEDED)
    return first + second


def _next_question(tokenizer: Tokenizer, *, adds_bos: bool) -> ScoreRequest:
    """Two continuations' first different tokens, asked for at the place where they differ."""
    first, second = _forked(tokenizer, _questions(tokenizer, adds_bos=adds_bos))
    tokens = first.wanted.tokens[0], second.wanted.tokens[0]
    return ScoreRequest(Segment("", first.given.tokens), Segment("", tokens), following=True)


def _following(
    client: Client, model: str, tokenizer: Tokenizer, adds_bos: bool, numbers: TokenLogprobs | None
) -> ResponseReader | None:
    """The way by next tokens, if the server knows it and it says the same as the way by whole texts."""
    reader, question = NextTokenBackend(client, model), _next_question(tokenizer, adds_bos=adds_bos)
    try:
        found = reader.read(question)
    except ServerError as error:
        _raise_if_for_all(error)
        return None
    if abs(found[0] - found[1]) < _DIFFERENT:
        return None
    if numbers is None:
        return reader
    first = _questions(tokenizer, adds_bos=adds_bos)[0]
    place = len(question.given) - len(first.given)
    expected = numbers[place], numbers[len(first.wanted) + place]
    return reader if all(abs(a - b) < _EQUAL for a, b in zip(found, expected, strict=True)) else None
