"""The attention of head h is that of the part of the projection's input which silencing head h sets to zero."""

import numpy as np
import pytest
import torch

from tests.lm.families import NAMES, model
from zicl.lm.heads import head_layout, last_token_attention

# Few tokens, each at several places.
TOKENS = (5, 9, 70, 5, 33, 9, 70, 33, 5, 9, 33, 70, 9, 5)


def joined(lm, tokens):
    """What the first layer's projection reads, (tokens, heads, size)."""
    places, seen = head_layout(lm), []
    hook = places.projections[0].register_forward_pre_hook(lambda _, given: seen.append(given[0][0]))
    try:
        with torch.inference_mode():
            lm.forward.body(input_ids=torch.tensor([list(tokens)]))
    finally:
        hook.remove()
    return seen[0].reshape(len(tokens), places.heads, places.size).double().numpy()


# GPT-2's values depend on their place too, which the test below does without.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "gpt2"])
def test_heads_are_numbered_as_their_parts_of_the_projections_input(name):
    """In the first layer a token has one value wherever it stands: a head's output is its attention to these values."""
    lm = model(name)
    read, heads = joined(lm, TOKENS), head_layout(lm).heads
    weights = np.zeros((heads, len(TOKENS), len(TOKENS)))
    for last in range(1, len(TOKENS)):
        weights[:, last, : last + 1] = last_token_attention(lm, TOKENS[: last + 1])[0]
    weights[:, 0, 0] = 1
    of_token = np.array([[token == other for other in dict.fromkeys(TOKENS)] for token in TOKENS], dtype=float)

    def unexplained(attention, part):
        to_tokens = weights[attention] @ of_token
        values, *_ = np.linalg.lstsq(to_tokens, read[:, part], rcond=None)
        return np.abs(to_tokens @ values - read[:, part]).max() / np.abs(read[:, part]).max()

    for head in range(heads):
        assert unexplained(head, head) < 1e-5
        assert all(unexplained(other, head) > 1e-3 for other in range(heads) if other != head)
