"""Classify by the nearest description: sentence-transformers and nothing else.

Started by peers.py, which says what comes in and what goes out.
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
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(request["threads"])
    model = SentenceTransformer(request["encoder"], device="cpu")
    loaded = perf_counter()
    labels = model.encode([label["description"] for label in request["labels"]])
    fitted = perf_counter()
    texts = model.encode(request["texts"])
    predictions = model.similarity(texts, labels).argmax(dim=1).tolist()
    done = perf_counter()
    answer = {
        "predictions": predictions,
        "seconds": {"load": loaded - begun, "fit": fitted - loaded, "predict": done - fitted},
        "versions": {name: version(name) for name in ("sentence-transformers", "transformers", "torch")},
    }
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
