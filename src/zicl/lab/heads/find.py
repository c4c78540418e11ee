"""The finder: which heads look, from before the answer, at the labels that are the same as the answer.

The score of a head is the mean, over prompts, of its attention to the displayed labels of the answer's class, less
that to the other labels shared over the other classes. A head that looks at all labels alike gets 0 where every class
is shown as often, as in balanced prompts. Where labels belong to their texts (gold ones of nearest training examples),
heads that copy the label of a text like the input are found; where labels were drawn, such a head gets 0 in the mean,
and only heads that look for a label by its own words are found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zicl.exceptions import ConfigError
from zicl.lab.heads.mark import Marked
from zicl.lab.heads.scores import FoundOn, HeadScores
from zicl.lm.attention_weights import attended
from zicl.lm.base import LanguageModel, Progress
from zicl.lm.heads import layout


def find_heads(
    lm: LanguageModel,
    prompts: Sequence[Marked],
    *,
    task: str = "",
    found_on: FoundOn = "training",
    progress: Progress | None = None,
) -> HeadScores:
    """The prefix-matching score of every head, one prompt after the other."""
    if not prompts:
        raise ConfigError("no prompts were given to find heads on", hint="give some training examples of a task")
    places = layout(lm)
    total = np.zeros((places.layers, places.heads))
    for prompt in prompts:
        seen = attended(lm, prompt.tokens)[:, :, list(prompt.keys)]
        total += seen.astype(np.float64) @ prompt.weights
        if progress:
            progress(1)
    scores = tuple(tuple(row) for row in (total / len(prompts)).tolist())
    return HeadScores(
        model=lm.name, identity=lm.identity, task=task, prompts=len(prompts), found_on=found_on, scores=scores
    )
