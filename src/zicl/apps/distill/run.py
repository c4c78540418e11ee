"""From a classifier with a language model and unlabelled texts to a small classifier.

texts ─ embed ─ draw a diverse sample ─ ask the language model ─┬─ train on most of them
                                                                └─ compare on the rest
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from zicl._util.files import check_own, locked
from zicl._util.progress import Report, silent
from zicl._util.random import rng
from zicl.apps.distill.agreement import agree
from zicl.apps.distill.classifier import DistilledClassifier
from zicl.apps.distill.embed import embedded
from zicl.apps.distill.origin import Origin
from zicl.apps.distill.sample import diverse_sample
from zicl.apps.distill.store import save
from zicl.apps.distill.teacher import ask
from zicl.apps.distill.train import train
from zicl.classifier import ZICLClassifier
from zicl.classifier_folder import CLASSIFIER
from zicl.exceptions import ConfigError, StorageError, TextError
from zicl.inputs.texts import check_texts
from zicl.persistence import depends_on
from zicl.retrieve.encoder import Encoder, Vectors, load_encoder

SAMPLE, HELD_OUT = 2000, 0.2
# Below that there is nothing to choose C on.
_LEAST = 5


def distill(
    teacher: ZICLClassifier,
    texts: Iterable[str | tuple[str, str]],
    *,
    sample: int = SAMPLE,
    held_out: float = HELD_OUT,
    encoder: Encoder | None = None,
    work: Path | None = None,
    overwrite: bool = False,
    report: Report = silent,
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
        shares = ask(teacher, asked, work or Path(scratch), overwrite=overwrite, report=report)
    learned, held = split(len(asked), held_out, teacher.seed_)
    trained = train(vectors[learned], shares[learned], teacher.seed_, report)
    origin = Origin(
        lm=teacher.lm_.name,
        teacher=depends_on(teacher),
        texts=len(given),
        distinct=len(distinct),
        sample=len(asked),
        trained=len(learned),
        strength=trained.strength,
        losses=trained.losses,
        agreement=agree(teacher.labels_.names, shares[held], trained.linear.scores(vectors[held])),
    )
    return DistilledClassifier(trained.linear, teacher.labels_, encoder, origin).fit()


def distill_to(
    output: Path,
    teacher: ZICLClassifier,
    texts: Iterable[str | tuple[str, str]],
    *,
    sample: int = SAMPLE,
    held_out: float = HELD_OUT,
    overwrite: bool = False,
    report: Report = silent,
) -> DistilledClassifier:
    """The same, saved to a folder. A run that was killed goes on with what it left in ``NAME.partial`` beside it."""
    if output.exists() and not overwrite:
        raise StorageError(f"{output} exists already", hint="choose another name with -o, or pass --overwrite")
    check_own(output, CLASSIFIER, "saved classifier")
    # Before the folder to work in is made: a wrong call leaves nothing behind.
    texts = _checked(teacher, texts, sample, held_out)
    work = output.with_name(output.name + ".partial")
    with locked(work, f"{output} is being made by another process"):
        made = distill(teacher, texts, sample=sample, held_out=held_out, work=work, overwrite=overwrite, report=report)
        save(made, output, overwrite=overwrite)
    shutil.rmtree(work, ignore_errors=True)
    return made


def distinct_texts(texts: Iterable[str]) -> list[str]:
    """The different texts, sorted: draws depend on which there are and not on their order.

    No text is both learned from and compared on.
    """
    distinct = sorted({text.strip() for text in texts})
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


def _checked(
    teacher: ZICLClassifier, texts: Iterable[str | tuple[str, str]], sample: int, held_out: float
) -> list[str]:
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


def _embed(encoder: Encoder, texts: Sequence[str], report: Report) -> Vectors:
    parts: list[Vectors] = []
    done = 0
    report("embedding", 0, len(texts), "texts")
    for vectors in embedded(encoder, texts):
        parts.append(vectors)
        done += len(vectors)
        report("embedding", done, len(texts), "texts")
    return np.concatenate(parts)
