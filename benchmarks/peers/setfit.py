"""Classify with SetFit's zero-shot recipe: train the encoder on sentences made of the names of the labels.

As its tutorial on zero-shot classification has it: get_templated_dataset with eight examples a label, and a Trainer
with the settings it comes with (one epoch). Started by peers.py, which says what comes in and what goes out.
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
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, get_templated_dataset

    torch.set_num_threads(request["threads"])
    model = SetFitModel.from_pretrained(request["encoder"], device="cpu")
    loaded = perf_counter()
    names = [label["name"] for label in request["labels"]]
    made = get_templated_dataset(Dataset.from_dict({}), candidate_labels=names, sample_size=8)
    trainer = Trainer(model=model, train_dataset=made)
    trainer.train()
    fitted = perf_counter()
    predictions = model.predict(request["texts"]).tolist()
    done = perf_counter()
    answer = {
        "predictions": predictions,
        "seconds": {"load": loaded - begun, "fit": fitted - loaded, "predict": done - fitted},
        "versions": {name: version(name) for name in ("setfit", "sentence-transformers", "transformers", "torch")},
    }
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
