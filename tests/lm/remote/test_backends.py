"""Every backend gives the numbers of the local model, for both inferences."""

import numpy as np
import pytest

from tests.conftest import DOCUMENTS, byte_tokenizer
from tests.lm.remote import server as fake
from tests.lm.remote.conftest import prompts
from zicl.exceptions import ServerError, TokenizationError
from zicl.lm.hf import HFLanguageModel
from zicl.prompt.builder import Prompt, PromptBuilder
from zicl.prompt.template import get_template


class TextOnly(fake.Davinci):
    takes_numbers = False


class LlamaCppBos(fake.LlamaCpp):
    adds_bos = True


class DirectOnly(fake.VLLM):
    whole = False


class NoIds(fake.VLLM):
    following = False


BACKEND_NAMES = {
    fake.VLLM: ("prompt_logprobs + logprob_token_ids", False),
    NoIds: ("prompt_logprobs", False),
    fake.SGLang: ("generate", False),
    fake.Davinci: ("echo of tokens", False),
    TextOnly: ("echo of text", False),
    LlamaCppBos: ("echo of text", True),
    fake.LlamaCpp: ("echo of text behind bos", True),
}


@pytest.fixture(scope="module")
def local():
    return HFLanguageModel(*fake.tiny(), name="tiny", identity="tiny")


def same(local, remote, asked: list[Prompt]):
    for a, b in zip(local.score(asked), remote.score(asked), strict=True):
        assert [len(row) for row in a] == [len(row) for row in b]
        for left, right in zip(a, b, strict=True):
            assert right.dtype == np.float32
            assert np.abs(left - right).max() < 1e-4


@pytest.mark.parametrize("kind", BACKEND_NAMES)
def test_numbers_are_those_of_the_local_backend(kind, running, opened, local):
    remote = opened(running(kind))
    assert (remote.way, remote.adds_bos) == BACKEND_NAMES[kind]
    for inference in ("direct", "channel"):
        same(local, remote, prompts(remote, inference))
        same(local, remote, prompts(remote, inference, 2, probes=("N/A", "a b")))


@pytest.mark.parametrize("kind", [fake.VLLM, fake.SGLang])
def test_the_servers_own_tokenizer_serves(kind, running, opened, local):
    remote = opened(running(kind), None)
    assert remote.tokenizer.encode("\nLabel: great") == local.tokenizer.encode("\nLabel: great")
    same(local, remote, prompts(remote, "channel", 1))


def test_a_first_token_that_the_server_adds_is_found(running, opened, local):
    raw = byte_tokenizer(add_bos_token=True)
    server = running(fake.VLLM, tokenizer=raw)
    for name in ("tiny", None):
        remote = opened(server, name, raw)
        assert remote.adds_bos
        same(local, remote, prompts(remote, "direct", 1))
        assert prompts(remote, "direct", 1)[0].prefix.tokens[0] == fake.BOS


def spaced_tokenizer():
    """Puts a space before every text, as SentencePiece does."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    lines = pre_tokenizers.Split("\n", "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([lines, pre_tokenizers.Metaspace(prepend_scheme="first")])
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    letters = [chr(code) for code in range(32, 127)] + ["\n"]
    trainer = trainers.BpeTrainer(
        vocab_size=380, special_tokens=["<s>", "</s>"], initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(DOCUMENTS * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize("name", ["tiny", None])
@pytest.mark.parametrize("kind", [fake.VLLM, fake.SGLang])
def test_a_space_that_the_tokenizer_puts_first_is_left_out(kind, name, running, opened):
    raw = spaced_tokenizer()

    remote = opened(running(kind, tokenizer=raw), name, raw)
    local = HFLanguageModel(fake.tiny()[0], raw, name="tiny", identity="tiny")
    asked = prompts(remote, "channel", 1)
    assert asked == prompts(local, "channel", 1)
    same(local, remote, asked)


def test_facts_of_the_server_become_those_of_the_model(running, opened):
    server = running(fake.VLLM)
    remote = opened(server)
    assert remote.context == 511
    assert remote.name == server.spec
    assert remote.revision == "tiny by prompt_logprobs + logprob_token_ids"
    assert opened(running(fake.SGLang)).context is None
    assert opened(running(fake.SGLang), context=300).context == 300
    # The same model asked in the same way is the same model at any address.
    assert opened(running(fake.VLLM)).identity == remote.identity != opened(running(fake.SGLang)).identity


def test_a_model_named_by_a_path_shows_only_its_name(running, opened):
    server = running(fake.LlamaCpp)
    server.name = "/home/somebody/models/tiny.gguf"
    remote = opened(server)
    assert "somebody" not in remote.name + remote.revision
    assert remote.name.endswith("#tiny.gguf")


def test_direct_inference_keeps_to_the_labels_trie(running, opened):
    server = running(fake.VLLM)
    remote = opened(server)
    before = server.count("/v1/completions")
    asked = prompts(remote, "direct", 1)
    remote.score(asked)
    bodies = [body for path, body in server.asked if path == "/v1/completions"][before:]
    assert all(len(body["logprob_token_ids"]) == body["logprobs"] for body in bodies)
    lines = [branch.scored.tokens for branch in asked[0].branches]
    nodes = {line[:n] for line in lines for n in range(len(line))}
    assert len(bodies) == len(nodes) < sum(map(len, lines))


def test_a_server_of_next_tokens_is_for_direct_inference_only(running, opened, local):
    remote = opened(running(DirectOnly))
    assert remote.way == "logprob_token_ids"
    same(local, remote, prompts(remote, "direct"))
    with pytest.raises(ServerError, match="not for channel") as refused:
        remote.score(prompts(remote, "channel", 1))
    assert "--inference direct" in str(refused.value)


@pytest.mark.parametrize("penalty", [1.3, 1.05])
def test_a_penalty_of_the_servers_own_changes_no_number(penalty, running, opened, local):
    """A model's generation_config.json may hold one, and --logprobs-mode processed_logprobs shows numbers after it."""
    server = running(fake.VLLM)
    server.penalty = penalty
    remote = opened(server)
    assert remote.way == "prompt_logprobs + logprob_token_ids"
    same(local, remote, prompts(remote, "direct"))


def test_a_token_that_spans_the_joint_is_an_error(running, opened):
    class Merging(TextOnly):
        """Reads a full stop and the line break behind it as one token, as the tokenizers of newer models do."""

        def encode(self, text):
            merged = []
            for token in super().encode(text):
                if merged and self.piece(merged[-1]) == "." and self.piece(token).startswith("\n"):
                    merged[-1] = 1
                else:
                    merged.append(token)
            return merged

        def piece(self, token):
            return ".\n" if token == 1 else super().piece(token)

    remote = opened(running(Merging))
    with pytest.raises(TokenizationError, match="spans the boundary"):
        remote.score(prompts(remote, "direct", 1))


def test_a_special_token_written_in_a_text_is_an_error_where_text_is_sent(running, opened):
    remote = opened(running(TextOnly))
    builder = PromptBuilder(remote.tokenizer, get_template("review"), "direct")
    with pytest.raises(TokenizationError, match="special token spelled out"):
        remote.score([builder.build("An end</s>of sorts", [], ("great", "terrible"))])
    whole = opened(running(fake.SGLang))
    assert len(whole.score([builder.build("An end</s>of sorts", [], ("great", "terrible"))])) == 1


def test_another_rule_for_the_first_token_than_the_servers_is_an_error(running, opened):
    for kind, match in ((LlamaCppBos, "reads a beginning"), (fake.LlamaCpp, "reads a beginning")):
        remote = opened(running(kind))
        remote.adds_bos = False
        with pytest.raises(TokenizationError, match=match):
            remote.score(prompts(remote, "direct", 1))
