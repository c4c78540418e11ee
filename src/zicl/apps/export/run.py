"""Write a classifier as a folder that runs without zicl: ONNX files, tokenizer, labels, script and a README.

film-onnx/
  encoder.onnx    tokens → a vector per token
  head.onnx       these vectors → probabilities
  tokenizer.json  text → tokens
  predict.py      the rest
  README.md       what it is, and how to use it
  labels.json     labels, thresholds and where texts are cut; written last
"""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from zicl._util.catalog import catalog
from zicl._util.counts import counted
from zicl._util.files import atomic_write, check_replaceable, exists_error, write_json, write_text
from zicl._util.process import __version__
from zicl.apps.distill.classifier import DistilledClassifier
from zicl.apps.export.head import ensemble_head, linear_head
from zicl.classifier import ZICLClassifier
from zicl.config import ONE_LABEL, Decision
from zicl.exceptions import EncoderMismatchError, StorageError, UsageError
from zicl.lm.model_cache import cached_encoder
from zicl.persistence import read_folder
from zicl.retrieve.encoder import Encoder
from zicl.retrieve.onnx import MODEL, TOKENIZER, OnnxEncoder
from zicl.score.experts import neutral_sentences
from zicl.score.manifest import ClassifierContent

HEAD, MANIFEST = "head.onnx", "labels.json"
# What a probability may differ by from the classifier's own.
TOLERANCE = 1e-4
_README = """\
# A text classifier: {labels}

Made from {source} with zicl {version}. It needs no zicl and no torch:

    pip install numpy onnxruntime tokenizers
    python predict.py reviews.csv > labelled.csv      # a column "text", or named after the file; or a .txt file

In Python:

    from predict import Classifier

    classifier = Classifier("{folder}")
    classifier.labels                                  # the order of the columns
    classifier.predict_proba(["The ending felt rushed."])

The encoder is {encoder}{licence}. Texts are cut after {max_tokens} tokens. Probabilities equal those of the
classifier that was exported to {tolerance:g}; this was checked when the folder was written.
"""


def export(classifier: ZICLClassifier | DistilledClassifier, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted classifier to a new folder, after comparing its probabilities with the classifier's own.

    Raises
    ------
    UsageError
        If the classifier asks a language model, or its encoder is no ONNX file.

    """
    folder = Path(path)
    if folder.exists() and not overwrite:
        raise exists_error(folder, overwrite=True)
    # Other folders may have a file of labels.
    check_replaceable(folder, HEAD, "an exported classifier")
    encoder = _onnx_encoder(_encoder(classifier))
    if isinstance(classifier, DistilledClassifier):
        head, names, decision = linear_head(classifier.linear, encoder.pooling), classifier.labels.names, ONE_LABEL
    else:
        ensemble = classifier.ensemble_
        head, names, decision = ensemble_head(ensemble, encoder.pooling), ensemble.names, ensemble.decision
    settings = {**_decisions(names, decision), "max_tokens": encoder.max_tokens, "zicl": __version__}
    with atomic_write(folder) as complete:
        complete.mkdir()
        shutil.copyfile(encoder.folder / MODEL, complete / "encoder.onnx")
        shutil.copyfile(encoder.folder / TOKENIZER, complete / "tokenizer.json")
        (complete / HEAD).write_bytes(head)
        write_text(complete / "predict.py", files("zicl").joinpath("apps/export/script.py").read_text("utf-8"))
        write_text(complete / "README.md", _readme(classifier, encoder, folder, names))
        write_json(complete / MANIFEST, settings)
        _compare(classifier, complete)
    return folder


def check_exportable(folder: Path) -> None:
    """Check that a saved classifier asks no language model, before one is loaded."""
    content = read_folder(folder)
    if isinstance(content, ClassifierContent) and content.lm is not None:
        raise _asks_lm(content.method)


def _asks_lm(method: str) -> UsageError:
    return UsageError(
        f"{method} asks a language model about every text, which cannot be exported",
        hint="export what was fitted with z-icl+ or encoder, or distil it first: zicl distill",
    )


def _encoder(classifier: ZICLClassifier | DistilledClassifier) -> Encoder:
    """Return the encoder of a classifier that needs nothing else."""
    if isinstance(classifier, DistilledClassifier):
        if classifier.of_pairs:
            raise UsageError(
                "this classifier labels pairs of texts, and the exported script reads single ones",
                hint="use it with zicl classify --with",
            )
        return classifier.encoder
    ensemble = classifier.ensemble_
    if ensemble.main is not None or ensemble.encoder_expert is None:
        raise _asks_lm(classifier.method_)
    if ensemble.labels.counted:
        raise UsageError(
            "each text has its own options, which cannot be exported", hint="give all texts the same labels"
        )
    expert = ensemble.encoder_expert
    given = classifier.encoder
    name = given if isinstance(given, str) and Path(given).name == Path(expert.encoder).name else expert.encoder
    encoder = cached_encoder(name, classifier.offline) if isinstance(given, str) else given
    if encoder.identity != expert.identity:
        raise EncoderMismatchError(
            f"the encoder {name} is not the one that the classifier was fitted with", hint="fit it again, then export"
        )
    return encoder


def _onnx_encoder(encoder: Encoder) -> OnnxEncoder:
    if isinstance(encoder, OnnxEncoder):
        return encoder
    usable = [name for name, asset in catalog().items() if asset.kind == "encoder" and asset.convert == "onnx"]
    raise UsageError(
        f"the encoder {encoder.name} runs in torch, and only ONNX encoders can be exported",
        hint=f"fit with one of {', '.join(usable)}, or a folder with an ONNX encoder (docs/reference/models.md)",
    )


def _decisions(names: tuple[str, ...], decision: Decision) -> dict[str, Any]:
    return {
        "labels": list(names),
        "multi": decision.multi,
        "none": decision.none,
        "thresholds": {name: decision.label_threshold(name) for name in names},
    }


def _readme(
    classifier: ZICLClassifier | DistilledClassifier, encoder: OnnxEncoder, folder: Path, names: tuple[str, ...]
) -> str:
    asset = catalog().get(encoder.name)
    source = "a distilled classifier" if isinstance(classifier, DistilledClassifier) else classifier.method_
    pile = None if isinstance(classifier, DistilledClassifier) else classifier.ensemble_.pile
    if pile is not None:
        source += f" and what it learned from {counted(pile.texts, 'text')}"
    return _README.format(
        labels=", ".join(names),
        source=source,
        version=__version__,
        folder=folder.name,
        encoder=Path(encoder.name).name,
        licence=f" ({asset.licence})" if asset else "",
        max_tokens=encoder.max_tokens,
        tolerance=TOLERANCE,
    )


def _compare(classifier: ZICLClassifier | DistilledClassifier, folder: Path) -> None:
    """Run the folder as its user will, and compare it with the classifier."""
    from zicl.apps.export.script import Classifier

    # The last is longer than what the encoder reads.
    texts = [*neutral_sentences(), " ".join(20 * neutral_sentences())]
    exported = Classifier(folder)
    expected = [prediction.probabilities for prediction in classifier.classify(texts)]
    rows = np.array([[row[name] for name in exported.labels] for row in expected])
    difference = float(np.abs(exported.predict_proba(texts) - rows).max())
    if difference > TOLERANCE:
        raise StorageError(
            f"the exported files give probabilities that differ by {difference:.1e} from the classifier's",
            hint="update onnxruntime, and please report this: it should not happen",
        )
