"""The distilled classifier: scikit-learn's contract, its folder, and its origin."""

import json
import shutil
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import zicl
from tests.apps.distill.conftest import SENTENCES
from tests.conftest import DOCUMENTS, BagEncoder
from zicl import ZICLClassifier
from zicl.apps.distill.classifier import DistilledClassifier
from zicl.apps.distill.run import distill
from zicl.config import PromptSettings
from zicl.exceptions import ConfigError, EncoderMismatchError, StorageError, TextError, UsageError
from zicl.prompt.labels import Labels
from zicl.score.pile import Linear


def test_scikit_learns_contract(made):
    scores, shares = made.decision_function(SENTENCES), made.predict_proba(SENTENCES)
    assert is_classifier(made)
    assert made.classes_.tolist() == ["great", "odd", "terrible"]
    assert made.labels_.names == ("terrible", "great", "odd")
    assert made.predict(SENTENCES).tolist() == made.classes_[scores.argmax(axis=1)].tolist()
    assert shares.sum(axis=1) == pytest.approx(1)
    assert clone(made).fit().predict_proba(SENTENCES).tolist() == shares.tolist()
    assert cross_val_score(made, SENTENCES, made.predict(SENTENCES), cv=2).tolist() == [1, 1]
    assert made.predict([]).shape == (0,)
    assert made.predict_proba([]).shape == (0, 3)
    with pytest.raises(NotFittedError):
        clone(made).predict(SENTENCES)
    with pytest.raises(TextError, match="row 1 is empty"):
        made.predict(["fine", " "])


def test_predictions_have_label_probabilities_and_margin(made):
    predictions = made.classify(SENTENCES)
    assert [p.label for p in predictions] == made.predict(SENTENCES).tolist()
    assert [p.text for p in predictions] == SENTENCES
    for prediction, row in zip(predictions, made.predict_proba(SENTENCES), strict=True):
        assert list(prediction.probabilities) == ["terrible", "great", "odd"]
        assert prediction.probabilities["odd"] == row[1]
        assert prediction.margin == pytest.approx(np.sort(row)[-1] - np.sort(row)[-2])


def test_other_texts_of_a_batch_change_no_more_than_the_last_digits(encoder_folder):
    from zicl.retrieve.encoder import load_encoder

    encoder = load_encoder(str(encoder_folder))
    weights = np.random.default_rng(0).normal(scale=20, size=(2, encoder.dimension))
    clf = DistilledClassifier(Linear(weights, np.zeros(2)), Labels.of(["a", "b"]), encoder).fit()
    together = clf.predict_proba([*SENTENCES, *DOCUMENTS])
    alone = np.concatenate([clf.predict_proba([text]) for text in [*SENTENCES, *DOCUMENTS]])
    assert together == pytest.approx(alone, abs=1e-4)
    assert clf.predict_proba([f"  {SENTENCES[0]}\n"]) == pytest.approx(alone[:1], abs=1e-12)


def test_binary_scores_are_one_column(index, lm):
    teacher = ZICLClassifier(index, ["terrible", "great"], lm, method="no-demos").fit()
    made = distill(teacher, SENTENCES, sample=10, encoder=BagEncoder())
    probabilities, scores = made.predict_proba(SENTENCES), made.decision_function(SENTENCES)
    assert scores == pytest.approx(np.log(probabilities[:, 1] / probabilities[:, 0]))


def test_a_pair_is_one_text(index, lm):
    pairs = list(pairwise(SENTENCES))
    settings = {"method": "no-demos", "prompt": PromptSettings(template="pair")}
    made = distill(
        ZICLClassifier(index, ["yes", "no"], lm, **{"method": "z-icl", **settings}).fit(),
        pairs,
        sample=10,
        encoder=BagEncoder(),
    )
    assert made.of_pairs
    joined = [" ".join(pair) for pair in pairs]
    assert made.predict_proba(pairs).tolist() == made.predict_proba(joined).tolist()


@pytest.fixture
def saved(made, tmp_path):
    return made.save(tmp_path / "fast.zicl-clf")


def test_a_loaded_classifier_gives_the_same_numbers(made, saved):
    again = zicl.load(saved, encoder=BagEncoder())
    assert again.predict_proba(SENTENCES).tolist() == made.predict_proba(SENTENCES).tolist()
    assert again.labels_ == made.labels_
    assert again.origin == zicl.load(saved, encoder=BagEncoder()).origin
    assert again.origin.agreement == made.origin.agreement
    assert sorted(p.name for p in saved.iterdir()) == ["classifier.json", "labels.toml", "weights.safetensors"]
    assert not [p for p in saved.parent.iterdir() if p.name.startswith(".fast")]
    content = json.loads((saved / "classifier.json").read_text())
    assert content["kind"] == "distilled"
    assert content["encoder"]["identity"] == BagEncoder.identity
    assert content["distilled"]["agreement"]["value"] == made.origin.agreement.value


def test_another_classifier_is_not_overwritten(made, saved, teacher):
    before = (saved / "classifier.json").stat().st_mtime_ns
    made.save(saved)
    assert zicl.load(saved, encoder=BagEncoder()).save(saved) == saved
    assert (saved / "classifier.json").stat().st_mtime_ns == before
    with pytest.raises(StorageError, match="exists already"):
        distill(teacher, SENTENCES, sample=10).save(saved)


def test_an_encoder_in_a_folder_is_found_again_beside_it(encoder_folder, tmp_path):
    from zicl.retrieve.encoder import load_encoder

    shutil.copytree(encoder_folder, tmp_path / "a" / "encoder")
    encoder = load_encoder(str(tmp_path / "a" / "encoder"))
    linear = Linear(np.ones((2, encoder.dimension)), np.zeros(2))
    DistilledClassifier(linear, Labels.of(["a", "b"]), encoder).fit().save(tmp_path / "a" / "x.zicl-clf")
    (tmp_path / "a").rename(tmp_path / "b")
    assert zicl.load(tmp_path / "b" / "x.zicl-clf").encoder.identity == encoder.identity
    shutil.rmtree(tmp_path / "b" / "encoder")
    with pytest.raises(UsageError, match="not where it was"):
        zicl.load(tmp_path / "b" / "x.zicl-clf")


def test_mismatches_are_errors(saved, made, encoder_folder, teacher, tmp_path):
    with pytest.raises(EncoderMismatchError, match="not the one"):
        zicl.load(saved, encoder=str(encoder_folder))
    with pytest.raises(UsageError, match="needs no corpus"):
        zicl.load(saved, index="c.zicl")
    with pytest.raises(UsageError, match="takes its corpus' own"):
        zicl.load(teacher.save(tmp_path / "slow.zicl-clf"), encoder=BagEncoder())
    with pytest.raises(ConfigError, match="the weights are for"):
        DistilledClassifier(made.linear, Labels.of(["a", "b"]), made.encoder).fit()
    content = json.loads((saved / "classifier.json").read_text())
    (saved / "classifier.json").write_text(json.dumps({**content, "distilled": {"lm": "x"}}))
    with pytest.raises(UsageError, match=r"classifier\.json"):
        zicl.load(saved, encoder=BagEncoder())
    for damage in (lambda p: p.write_bytes(p.read_bytes()[:-8]), lambda p: p.unlink()):
        (saved / "classifier.json").write_text(json.dumps(content))
        damage(saved / "weights.safetensors")
        with pytest.raises(StorageError, match="not what was written there"):
            zicl.load(saved, encoder=BagEncoder())


def test_labels_are_matched_by_name_not_position(saved, made):
    before = zicl.load(saved, encoder=BagEncoder()).predict(SENTENCES).tolist()
    text = (saved / "labels.toml").read_text()
    first, *rest = text.split("[[label]]")
    (saved / "labels.toml").write_text("[[label]]".join([first, *(f"{part.rstrip()}\n\n" for part in rest[::-1])]))
    assert zicl.load(saved, encoder=BagEncoder()).predict(SENTENCES).tolist() == before
    (saved / "labels.toml").write_text(text.replace(made.labels_.names[0], "other"))
    with pytest.raises(UsageError, match="were fitted"):
        zicl.load(saved, encoder=BagEncoder())


def test_changed_weights_are_an_error(saved, made):
    from safetensors.numpy import save_file

    save_file({"weights": made.linear.weights * 2, "offsets": made.linear.offsets}, saved / "weights.safetensors")
    with pytest.raises(StorageError, match="not what was written there"):
        zicl.load(saved, encoder=BagEncoder())
