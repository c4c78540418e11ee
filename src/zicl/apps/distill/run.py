"""Asking the language model about the drawn texts, once each: what it said is on disk as soon as it is said."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from zicl._util.files import check_replaceable, locked, text_hash
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.apps.distill.agreement import measure_agreement
from zicl.apps.distill.classifier import DistillationRecord, DistilledClassifier, encode_in_chunks, save_distilled
from zicl.apps.distill.train import diverse_sample, train
from zicl.classifier import ZICLClassifier
from zicl.exceptions import ConfigError, StorageError, TextError, UsageError
from zicl.inputs.output import OutputFile
from zicl.inputs.pair import Text, text_key
from zicl.inputs.texts import check_texts
from zicl.persistence import CLASSIFIER
from zicl.retrieve.encoder import Encoder, Vectors, load_encoder
from zicl.score.calibration import Scores

STAGE = "asking the language model"
_FILE = "answers.jsonl"
_CHUNK = 16


def query_teacher(
    teacher: ZICLClassifier,
    texts: Sequence[Text],
    work: Path,
    *,
    overwrite: bool = False,
    report: ProgressReport = silent,
) -> Scores:
    """The language model's probabilities, one row a text and one column a label, in the labels' order.

    They are kept in ``work`` by the text's hash: a run that was killed, or one that asks about more texts, goes on
    with those that are missing. With ``overwrite``, answers under other settings are dropped, not an error.
    """
    target = _open(work / _FILE, teacher.fingerprint(), overwrite=overwrite)
    names = [_name(text) for text in texts]
    left = sum(name not in target.done for name in names)
    begun, done = time.monotonic(), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(STAGE, done, left, f"{done / max(time.monotonic() - begun, 1e-9):.2f} rows a second" if done else "")

    advance(0)
    # Counted from the first text: a resumed run forms the same groups.
    order = teacher.order(texts)
    for start in range(0, len(texts), _CHUNK):
        chunk = [n for n in order[start : start + _CHUNK] if names[n] not in target.done]
        if chunk:
            results = teacher.classify([texts[n] for n in chunk], advance)
            shares = [list(result.probabilities.values()) for result in results]
            target.write([{"id": names[n], "p": row} for n, row in zip(chunk, shares, strict=True)])
    return _read(target.path, names)


def _open(path: Path, settings: dict[str, Any], *, overwrite: bool) -> OutputFile:
    try:
        return OutputFile(path, settings, ["id", "p"])
    except UsageError:
        if not overwrite:
            raise
        return OutputFile(path, settings, ["id", "p"], overwrite=True)


def _name(text: Text) -> str:
    return f"{text_hash(text_key(text)):016x}"


def _read(path: Path, names: Sequence[str]) -> Scores:
    with path.open(encoding="utf-8") as stream:
        known = {entry["id"]: entry["p"] for entry in map(json.loads, stream)}
    return np.array([known[name] for name in names], dtype=np.float64)


# -- From a classifier with a language model and unlabelled texts to a small classifier.


SAMPLE, HELD_OUT = 2000, 0.2
# Below that there is nothing to choose C on.
_LEAST = 5


def distill(
    teacher: ZICLClassifier,
    texts: Iterable[Any],
    *,
    sample: int = SAMPLE,
    held_out: float = HELD_OUT,
    encoder: Encoder | None = None,
    work: Path | None = None,
    overwrite: bool = False,
    report: ProgressReport = silent,
) -> DistilledClassifier:
    """A classifier that learned a fitted one's answers on ``texts``; everything is drawn by the teacher's seed.

    The language model is asked about ``sample`` texts and a share of them, ``held_out``, is only compared with. The
    vectors are those of ``encoder``, else of the teacher's corpus. What the language model said is kept in the folder
    ``work``, if one is given, and is not asked again.
    """
    given = _checked(teacher, texts, sample, held_out)
    distinct = distinct_texts(given)
    encoder = encoder or _encoder(teacher)
    vectors = _embed(encoder, distinct, report)
    report("drawing the sample", 0, 1)
    chosen = diverse_sample(vectors, sample, teacher.seed_)
    report("drawing the sample", 1, 1)
    asked, vectors = [distinct[int(n)] for n in chosen], vectors[chosen]
    with TemporaryDirectory(prefix="zicl-") as scratch:
        shares = query_teacher(teacher, asked, work or Path(scratch), overwrite=overwrite, report=report)
    learned, held = split(len(asked), held_out, teacher.seed_)
    trained = train(vectors[learned], shares[learned], teacher.seed_, report)
    origin = DistillationRecord(
        lm=teacher.lm_.name,
        teacher=teacher.fingerprint(),
        texts=len(given),
        distinct=len(distinct),
        sample=len(asked),
        trained=len(learned),
        strength=trained.strength,
        losses=trained.losses,
        agreement=measure_agreement(teacher.labels_.names, shares[held], trained.linear.scores(vectors[held])),
    )
    return DistilledClassifier(trained.linear, teacher.labels_, encoder, origin).fit()


def distill_to(
    output: Path,
    teacher: ZICLClassifier,
    texts: Iterable[Any],
    *,
    sample: int = SAMPLE,
    held_out: float = HELD_OUT,
    overwrite: bool = False,
    report: ProgressReport = silent,
) -> DistilledClassifier:
    """The same, saved to a folder. A run that was killed goes on with what it left in ``NAME.partial`` beside it."""
    if output.exists() and not overwrite:
        raise StorageError(f"{output} exists already", hint="choose another name with -o, or pass --overwrite")
    check_replaceable(output, CLASSIFIER, "saved classifier")
    # Before the folder to work in is made: a wrong call leaves nothing behind.
    texts = _checked(teacher, texts, sample, held_out)
    work = output.with_name(output.name + ".partial")
    with locked(work, f"{output} is being made by another process"):
        made = distill(teacher, texts, sample=sample, held_out=held_out, work=work, overwrite=overwrite, report=report)
        save_distilled(made, output, overwrite=overwrite)
    shutil.rmtree(work, ignore_errors=True)
    return made


def distinct_texts(texts: Iterable[Text]) -> list[Text]:
    """The different texts, sorted: draws depend on which there are and not on their order.

    No text is both learned from and compared on.
    """
    distinct = sorted({text.strip() for text in texts}, key=text_key)
    if len(distinct) < _LEAST:
        raise TextError(
            f"{len(distinct)} different texts were given; expected at least {_LEAST}",
            hint="give more unlabelled texts: thousands, if there are as many",
        )
    return distinct


def split(count: int, held_out: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from (at least two) and rows to compare on (at least one)."""
    held = min(max(1, round(count * held_out)), count - 2)
    mixed = rng(seed, "rows to compare on").permutation(count)
    return np.sort(mixed[held:]), np.sort(mixed[:held])


def _checked(teacher: ZICLClassifier, texts: Iterable[Any], sample: int, held_out: float) -> list[Text]:
    """The texts, if there are enough of them, and the teacher and the settings can be used."""
    if sample < _LEAST:
        raise ConfigError(f"a sample of {sample} rows was asked for; expected at least {_LEAST}")
    if not 0 < held_out < 1:
        raise ConfigError(
            f"a share of {held_out} to compare on was asked for; expected one between 0 and 1", hint="0.2, for example"
        )
    check_is_fitted(teacher, "pipeline_")
    if teacher.labels_.counted:
        raise ConfigError(
            "a classifier whose options are other words for every text cannot be distilled",
            hint="weights are learned for each label: name labels that stay the same",
        )
    given = check_texts(texts)
    distinct_texts(given)
    return given


def _encoder(teacher: ZICLClassifier) -> Encoder:
    """The corpus' own, whose vectors the language model's demonstrations were found with; else the default."""
    return load_encoder(offline=teacher.offline) if teacher.index_ is None else teacher.index_.encoder


def _embed(encoder: Encoder, texts: Sequence[Text], report: ProgressReport) -> Vectors:
    parts: list[Vectors] = []
    done = 0
    report("embedding", 0, len(texts), "texts")
    for vectors in encode_in_chunks(encoder, texts):
        parts.append(vectors)
        done += len(vectors)
        report("embedding", done, len(texts), "texts")
    return np.concatenate(parts)
