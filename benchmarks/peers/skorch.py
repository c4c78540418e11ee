"""Classify with skorch's ZeroShotClassifier: its own prompt, the names of the labels, and a language model.

The model is given loaded, as skorch documents it, since its fit would else do the loading. Started by peers.py, which
says what comes in and what goes out.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    begun = perf_counter()
    import torch
    from skorch.llm import ZeroShotClassifier
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(request["threads"])
    model = AutoModelForCausalLM.from_pretrained(request["lm"])
    tokenizer = AutoTokenizer.from_pretrained(request["lm"])
    loaded = perf_counter()
    names = [label["name"] for label in request["labels"]]
    classifier = ZeroShotClassifier(model=model, tokenizer=tokenizer)
    classifier.fit(X=None, y=names)
    fitted = perf_counter()
    predictions = [names.index(name) for name in classifier.predict(request["texts"])]
    done = perf_counter()
    answer = {
        "predictions": predictions,
        "seconds": {"load": loaded - begun, "fit": fitted - loaded, "predict": done - fitted},
        "versions": {name: version(name) for name in ("skorch", "transformers", "torch")},
    }
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
