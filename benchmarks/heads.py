"""Time a study of heads that runs the layers below the silenced heads once, against running all layers every time.

    python benchmarks/heads.py            # a sentence
    python benchmarks/heads.py --json     # {"ratio": …, "layers": …, "below": …, "equal": …, …

Four methods on real prompts of the default model, in the same run: no head silenced, and three sets of five heads in
its upper layers, as in the study of heads.
"""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from typing import Any

from machine import best_of, verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--lowest", type=int, default=18, help="the lowest layer with a silenced head")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is timed, in turn; the fastest counts")
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(arguments.threads)
    from score import prepare

    from zicl.apps.demo import example_index, reviews
    from zicl.lm.heads import Head, head_layout, silence_heads
    from zicl.lm.layer_cache import LowerLayerCache
    from zicl.lm.load import load_lm

    lm = load_lm(offline=True)
    texts = [text for text, _ in reviews("rotten_tomatoes")][:: 8530 // arguments.prompts][: arguments.prompts]
    prompts = prepare(lm, example_index(), ["terrible", "great"], "channel", texts, "z-icl")
    layout = head_layout(lm)
    upper = [Head(layer, head) for layer in range(arguments.lowest, layout.layers) for head in range(layout.heads)]
    sets: list[list[Head]] = [[], *([upper[0], *upper[first::17][:4]] for first in (1, 2, 3))]

    def run(*, sharing: bool) -> list[Any]:
        below = LowerLayerCache(layout.blocks[: arguments.lowest]) if sharing else None
        scores = []
        for heads in sets:
            with silence_heads(lm, heads), lm.forward.use_layer_cache(below) if below else nullcontext():
                scores.append(lm.score(prompts))
        return scores

    equal = all(
        (a == b).all()
        for one, other in zip(run(sharing=True), run(sharing=False), strict=True)
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    )
    watches: dict[bool, list[Any]] = {True: [], False: []}
    for _ in range(arguments.rounds):
        for sharing, timed in watches.items():
            timed.append(best_of(lambda sharing=sharing: run(sharing=sharing), 1))
    seconds = {sharing: min(watch.seconds for watch in timed) for sharing, timed in watches.items()}
    others = max(watch.others for timed in watches.values() for watch in timed)
    result = {
        "ratio": round(seconds[False] / seconds[True], 2),
        "methods": len(sets),
        "layers": layout.layers,
        "below": arguments.lowest,
        "equal": equal,
        "seconds": {"shared": round(seconds[True], 2), "whole": round(seconds[False], 2)},
        "verdict": verdict(others),
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"{len(sets)} methods with {arguments.lowest} of {layout.layers} layers shared: {result['ratio']} times as "
        f"fast as running all, scores {'equal to the last digit' if equal else 'DIFFERENT'} ({result['verdict']})"
    )


if __name__ == "__main__":
    main()
