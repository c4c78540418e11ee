"""A trial text with known tokens and continuations: check with it that a backend fits the server and the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zicl.exceptions import ServerError, TokenizationError
from zicl.lm.remote.backends.base import LogprobReader
from zicl.lm.remote.requests import ScoreRequest, TokenLogprobs
from zicl.prompt.tokens import Segment, Tokenizer

# Lines end in letters, so that no tokenizer joins their end with the line break.
TRIAL_TEXT = "Place: the kitchen\nThing: a kettle\n\n\nPlace: the harbour"
_CONTINUATIONS = ("\nThing: an old boat", "\nThing: seven purple of of")
# Log-likelihoods that differ by less are the same; readings of the same number may differ by this much.
DIFFERENT, EQUAL = 1e-3, 0.05


@dataclass(frozen=True)
class TokenSplit:
    """The tokens that a server makes of a text, as numbers or texts (None if it does not say), and their count.

    A token that the server prepends but does not show is in the count only.
    """

    tokens: tuple[int | str | None, ...]
    count: int


class WrongTokenizerError(TokenizationError):
    """The tokenizer is not that of the server, whatever the backend."""


def check_split(tokenizer: Tokenizer, split: TokenSplit) -> bool:
    """Check that the server splits the trial text as the tokenizer does; return whether it prepends a BOS token."""
    tokens = tokenizer.encode(TRIAL_TEXT)
    if split.count == len(tokens) and same_tokens(tokenizer, split.tokens, tokens):
        return False
    if tokenizer.bos is not None and split.count == len(tokens) + 1:
        visible = (tokenizer.bos, *tokens) if len(split.tokens) == split.count else tokens
        if same_tokens(tokenizer, split.tokens, visible):
            return True
    raise _wrong_tokenizer(tokenizer, len(tokens), split.count)


def check_split_after_first_line(tokenizer: Tokenizer, split: TokenSplit) -> None:
    """Check that the server splits the trial text as the tokenizer does.

    The tokens of the first line are only counted: some servers prepend a space or a token, which the tokenizer omits.
    """
    start = TRIAL_TEXT.index("\n")
    head, tail = tokenizer.encode(TRIAL_TEXT[:start]), tokenizer.encode(TRIAL_TEXT[start:])
    before = split.count - len(tail)
    if not len(head) - 1 <= before <= len(head) + 2 or not same_tokens(tokenizer, split.tokens[before:], tail):
        raise _wrong_tokenizer(tokenizer, len(head) + len(tail), split.count)


def _wrong_tokenizer(tokenizer: Tokenizer, ours: int, theirs: int) -> WrongTokenizerError:
    return WrongTokenizerError(
        f"{tokenizer.name} is not the server's tokenizer: it splits a text into {ours} tokens, and the server into "
        f"{theirs}, or into different ones",
        hint="name the tokenizer of the model: --server tokenizer= a catalog name, hf:ID, folder or gguf:FILE",
    )


def same_tokens(tokenizer: Tokenizer, reported: Sequence[int | str | None], tokens: Sequence[int]) -> bool:
    """Return whether a server reports these tokens, as numbers or as texts; None is not compared."""
    if len(reported) != len(tokens):
        return False
    pairs = zip(reported, tokens, strict=True)
    return all(a is None or (a == b if isinstance(a, int) else a == tokenizer.decode((b,))) for a, b in pairs)


def prepends_bos(tokenizer: Tokenizer) -> bool:
    """Return whether the tokenizer by default prepends its beginning-of-sequence token."""
    return bool(getattr(tokenizer, "adds_bos", lambda: False)())


def trial_requests(tokenizer: Tokenizer, *, adds_bos: bool) -> list[ScoreRequest]:
    """Return requests for two continuations of the trial text."""
    given = Segment(TRIAL_TEXT, tokenizer.encode(TRIAL_TEXT))
    if adds_bos and tokenizer.bos is not None:
        given = Segment("", (tokenizer.bos,)) + given
    return [ScoreRequest(given, Segment(text, tokenizer.encode(text))) for text in _CONTINUATIONS]


def diverging_requests(tokenizer: Tokenizer, requests: list[ScoreRequest]) -> list[ScoreRequest]:
    """Move what two requests share to the given part, so that their first targets differ."""
    first, second = (request.targets.tokens for request in requests)
    shared = next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    front, *rest = (Segment(tokenizer.decode(part), part) for part in (first[:shared], first[shared:], second[shared:]))
    return [ScoreRequest(requests[0].given + front, targets) for targets in rest]


def trial_logprobs(reader: LogprobReader, requests: list[ScoreRequest]) -> TokenLogprobs:
    """Return the log-likelihoods of both continuations; raise if they do not differ."""
    first, second = (reader.read(request) for request in requests)
    if abs(sum(first) / len(first) - sum(second) / len(second)) < DIFFERENT:
        raise ServerError(f"{reader.name} gives different texts the same score")
    return first + second
