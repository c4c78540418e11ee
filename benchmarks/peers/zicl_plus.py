"""Classify with z-icl+, the default: the texts are the pile.

Started by peers.py, which says what comes in and what goes out.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from time import perf_counter


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    begun = perf_counter()
    from zicl import Label, Labels, ZICLClassifier, load_encoder

    warnings.simplefilter("ignore")
    encoder = load_encoder(offline=True)
    loaded = perf_counter()
    labels = Labels(tuple(Label(x["name"], "", tuple(x["synonyms"]), x["description"]) for x in request["labels"]))
    classifier = ZICLClassifier(labels=labels, encoder=encoder).fit(request["texts"])
    fitted = perf_counter()
    predictions = [labels.names.index(label) for label in classifier.predict(request["texts"])]
    done = perf_counter()
    answer = {
        "predictions": predictions,
        "seconds": {"load": loaded - begun, "fit": fitted - loaded, "predict": done - fitted},
        "versions": {name: version(name) for name in ("zicl", "onnxruntime")},
    }
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
