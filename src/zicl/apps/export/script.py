"""Label texts with this folder alone: numpy, onnxruntime and tokenizers.

Run ``python predict.py FILE [COLUMN] > labelled.csv``: a .csv with that column (text), or any other file with a text on
each line.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

# Texts and tokens of a batch: small ones stay in a CPU's cache.
TEXTS, TOKENS = 16, 512


class Classifier:
    """The exported classifier."""

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        self.settings = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
        self.labels: list[str] = self.settings["labels"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(self.settings["max_tokens"])
        options = onnxruntime.SessionOptions()
        # Threads that wait by spinning take the cores away from those that work.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.encoder = onnxruntime.InferenceSession(folder / "encoder.onnx", options)
        self.head = onnxruntime.InferenceSession(folder / "head.onnx")

    def predict_proba(self, texts: list[str]) -> np.ndarray:
        """Return one row of probabilities per text, in the order of ``labels``."""
        rows = [encoding.ids for encoding in self.tokenizer.encode_batch([text.strip() for text in texts])]
        wanted = {each.name for each in self.encoder.get_inputs()}
        result = np.empty((len(rows), len(self.labels)))
        # Texts of one length together: hardly any padding.
        order = sorted(range(len(rows)), key=lambda n: -len(rows[n]))
        while order:
            longest = max(1, len(rows[order[0]]))
            size = max(TEXTS, TOKENS // longest)
            chosen, order = order[:size], order[size:]
            ids = np.zeros((len(chosen), longest), dtype=np.int64)
            mask = np.zeros_like(ids)
            for place, n in enumerate(chosen):
                ids[place, : len(rows[n])], mask[place, : len(rows[n])] = rows[n], 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = self.encoder.run(None, {name: inputs[name] for name in wanted})[0]
            result[chosen] = self.head.run(None, {"states": states, "mask": mask})[0]
        return result

    def choose(self, row: np.ndarray) -> str:
        """Return the label of a text; several are joined by ``|``."""
        likely = dict(zip(self.labels, row, strict=True))
        limits, none = self.settings["thresholds"], self.settings["none"]
        if self.settings["multi"]:
            return "|".join(name for name in self.labels if likely[name] >= limits[name])
        if none and likely[none] >= limits[none]:
            return str(none)
        return max((name for name in self.labels if name != none), key=lambda name: likely[name])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    path, column = Path(sys.argv[1]), (*sys.argv[2:], "text")[0]
    csv.field_size_limit(1 << 30)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            if path.suffix == ".csv":
                texts = [row.get(column) or "" for row in csv.DictReader(stream)]
            else:
                texts = stream.read().splitlines()
    except OSError as error:
        sys.exit(f"{path} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        sys.exit(f"{path} is not UTF-8: save it as that")
    if "" in texts:
        sys.exit(f"{path}: row {texts.index('') + 1} has no text, or there is no column {column}")
    classifier = Classifier(Path(__file__).parent)
    # As UTF-8 on every system.
    with open(sys.stdout.fileno(), "w", encoding="utf-8", newline="", closefd=False) as output:
        writer = csv.writer(output)
        writer.writerow(["text", "label", *classifier.labels])
        for text, row in zip(texts, classifier.predict_proba(texts), strict=True):
            writer.writerow([text, classifier.choose(row), *(f"{p:.6f}" for p in row)])
