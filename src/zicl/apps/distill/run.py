"""``distill``: from a fitted classifier with a language model and unlabelled texts to a small classifier."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl._util.counts import counted
from zicl._util.files import check_replaceable, exists_error, text_hash
from zicl._util.locks import remove_finished, work_folder
from zicl._util.progress import ProgressReport, silent
from zicl._util.random import rng
from zicl.apps.distill.agreement import measure_agreement
from zicl.apps.distill.classifier import DistillationRecord, DistilledClassifier, save_distilled
from zicl.apps.distill.train import diverse_sample, train
from zicl.classifier import ZICLClassifier
from zicl.config import ONE_LABEL
from zicl.exceptions import ConfigError, TextError, UsageError
from zicl.inputs.output import OutputFile
from zicl.inputs.pair import Text, text_key
from zicl.inputs.texts import check_texts
from zicl.persistence import CLASSIFIER
from zicl.retrieve.embedding import encode_in_chunks
from zicl.retrieve.encoder import Encoder, load_encoder
from zicl.score.calibration import Scores

SAMPLE, HELD_OUT = 2000, 0.2
# With fewer texts there is nothing to choose C on.
_MIN_TEXTS = 5
# The progress stage of the teacher.
STAGE = "asking the language model"
_ANSWERS = "answers.jsonl"
_CHUNK = 16


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
    """Train a small classifier to repeat a fitted classifier's predictions at the speed of the encoder alone.

    Parameters
    ----------
    teacher
        A fitted classifier; its seed decides every random draw.
    texts
        Unlabelled texts, or pairs, like those to be classified; give thousands if there are as many.
    sample
        How many distinct texts the teacher classifies; they are chosen to be diverse.
    held_out
        The proportion of the sample that is not trained on, to measure the agreement on.
    encoder
        The encoder of the vectors; by default that of the teacher's corpus.
    work
        A folder that keeps the teacher's probabilities, so that an interrupted run can be resumed.
    overwrite
        Drop probabilities in ``work`` that were computed with other settings.
    report
        Called with the progress of each stage.

    Returns
    -------
    DistilledClassifier
        Ready to predict; its ``origin.agreement`` says how well it repeats the teacher.

    """
    checked = _check(teacher, texts, sample, held_out)
    distinct = distinct_texts(checked)
    if encoder is None:
        encoder = load_encoder(offline=teacher.offline) if teacher.index_ is None else teacher.index_.encoder
    vectors = np.concatenate(list(encode_in_chunks(encoder, distinct, report)))
    report("drawing the sample", 0, 1)
    chosen = diverse_sample(vectors, sample, teacher.seed_)
    report("drawing the sample", 1, 1)
    sampled, vectors = [distinct[int(n)] for n in chosen], vectors[chosen]
    with TemporaryDirectory(prefix="zicl-") as scratch:
        probabilities = query_teacher(teacher, sampled, work or Path(scratch), overwrite=overwrite, report=report)
    kept, held = split_rows(len(sampled), held_out, teacher.seed_)
    trained = train(vectors[kept], probabilities[kept], teacher.seed_, report)
    agreement = measure_agreement(teacher.labels_.names, probabilities[held], trained.linear.scores(vectors[held]))
    origin = DistillationRecord(
        lm=teacher.prompting().lm.name,
        teacher=teacher.fingerprint(),
        texts=len(checked),
        distinct=len(distinct),
        sample=len(sampled),
        trained=len(kept),
        strength=trained.strength,
        losses=trained.losses,
        agreement=agreement,
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
    """Distil and save to a folder; an interrupted run is resumed from ``NAME.partial`` beside it."""
    remove_finished(output, CLASSIFIER)
    if output.exists() and not overwrite:
        raise exists_error(output, overwrite=True)
    check_replaceable(output, CLASSIFIER, "a saved classifier")
    # Checked before the work folder is made: a wrong call leaves nothing behind.
    texts = _check(teacher, texts, sample, held_out)
    with work_folder(output, f"{output} is being made by another process") as work:
        made = distill(teacher, texts, sample=sample, held_out=held_out, work=work, overwrite=overwrite, report=report)
        save_distilled(made, output, overwrite=overwrite, work=work)
    return made


def _check(teacher: ZICLClassifier, texts: Iterable[Any], sample: int, held_out: float) -> list[Text]:
    """Check the settings and the teacher, and return the texts if there are enough."""
    if sample < _MIN_TEXTS:
        raise ConfigError(f"the sample is {sample} texts; expected at least {_MIN_TEXTS}")
    if not 0 < held_out < 1:
        raise ConfigError(
            f"the held-out proportion is {held_out}; expected a number between 0 and 1", hint="0.2, for example"
        )
    teacher.prompting()
    if teacher.settings_.decision != ONE_LABEL:
        raise ConfigError(
            "a distilled classifier gives each text one of its labels, and this teacher allows none, or several",
            hint="make the teacher without none and multi",
        )
    if teacher.labels_.counted:
        raise ConfigError(
            "a classifier whose options differ from text to text cannot be distilled",
            hint="weights are trained for each label: name labels that all texts share",
        )
    checked = check_texts(texts)
    distinct_texts(checked)
    return checked


def distinct_texts(texts: Iterable[Text]) -> list[Text]:
    """Return the distinct texts, sorted: draws depend on the set of texts and not on their order.

    Without duplicates, no text is both trained on and held out.
    """
    distinct = sorted({text.strip() for text in texts}, key=text_key)
    if len(distinct) < _MIN_TEXTS:
        raise TextError(
            f"{counted(len(distinct), 'different text was', 'different texts were')} given; "
            f"expected at least {_MIN_TEXTS}",
            hint="give more unlabelled texts: thousands, if there are as many",
        )
    return distinct


def split_rows(count: int, held_out: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to train on (at least two) and the held-out rows (at least one)."""
    held = min(max(1, round(count * held_out)), count - 2)
    mixed = rng(seed, "rows to compare on").permutation(count)
    return np.sort(mixed[held:]), np.sort(mixed[:held])


def query_teacher(
    teacher: ZICLClassifier,
    texts: Sequence[Text],
    work: Path,
    *,
    overwrite: bool = False,
    report: ProgressReport = silent,
) -> Scores:
    """Return the teacher's probabilities, one row per text, one column per label in the labels' order.

    They are stored in ``work`` by the hash of the text, chunk by chunk: a resumed run, or one with more texts, computes
    only the missing ones. With ``overwrite``, probabilities of other settings are dropped; without, they are an error.
    """
    target = _open_answers(work / _ANSWERS, teacher.fingerprint(), overwrite=overwrite)
    ids = [f"{text_hash(text_key(text)):016x}" for text in texts]
    missing = sum(id_ not in target.done for id_ in ids)
    begun, done = time.monotonic(), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        rate = done / max(time.monotonic() - begun, 1e-9)
        report(STAGE, done, missing, f"{rate:.2f} rows per second" if done else "")

    advance(0)
    # Chunks are counted over all texts: a resumed run forms the same ones.
    order = teacher.order(texts)
    for start in range(0, len(texts), _CHUNK):
        chunk = [n for n in order[start : start + _CHUNK] if ids[n] not in target.done]
        if chunk:
            predictions = teacher.classify([texts[n] for n in chunk], advance)
            rows = [list(prediction.probabilities.values()) for prediction in predictions]
            target.write([{"id": ids[n], "p": row} for n, row in zip(chunk, rows, strict=True)])
    with target.path.open(encoding="utf-8") as stream:
        known = {entry["id"]: entry["p"] for entry in map(json.loads, stream)}
    return np.array([known[id_] for id_ in ids], dtype=np.float64)


def _open_answers(path: Path, settings: dict[str, Any], *, overwrite: bool) -> OutputFile:
    try:
        return OutputFile(path, settings, ["id", "p"])
    except UsageError:
        if not overwrite:
            raise
        return OutputFile(path, settings, ["id", "p"], overwrite=True)
