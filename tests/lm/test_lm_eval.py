"""The same log-likelihoods as lm-evaluation-harness gives for the same token ids."""

import numpy as np
import pytest

from tests.conftest import DOCUMENTS, byte_tokenizer, tiny_model
from zicl.lm.hf import HFLanguageModel
from zicl.prompt.builder import LabelledText, PromptBuilder
from zicl.prompt.template import get_template


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_parity_with_lm_eval(inference):
    from lm_eval.models.huggingface import HFLM

    model, tokenizer = tiny_model("gpt2"), byte_tokenizer()
    lm = HFLanguageModel(model, tokenizer, name="tiny", identity="tiny")
    peer = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=4, max_length=512)
    builder = PromptBuilder(lm.tokenizer, get_template("review"), inference)
    demos = [LabelledText(text.split(". ")[0] + ".", "good") for text in DOCUMENTS[:4]]
    prompts = [
        builder.build(text, demos, ("great", "terrible")) for text in ("A bold film.", "The soup was cold and thin.")
    ]
    asked = []
    for prompt in prompts:
        for branch in prompt.branches:
            context = prompt.prefix.tokens + prompt.stem.tokens + branch.given.tokens
            asked.append((("", ""), list(context), list(branch.scored.tokens)))
    theirs = [score for score, _ in peer._loglikelihood_tokens(asked, disable_tqdm=True)]
    ours = [float(row.sum(dtype=np.float64)) for rows in lm.score(prompts) for row in rows]
    assert ours == pytest.approx(theirs, abs=1e-3)
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-4 * max(map(abs, theirs))
