"""What fit checks, loads again and learns; parameters of other kinds are named."""

import shutil

import numpy as np
import pytest

from tests.conftest import DOCUMENTS, tiny_model
from tests.test_classifier import TEXTS, classifier
from zicl._util.random import stable_hash
from zicl.config import PromptSettings, Retrieval
from zicl.exceptions import ConfigError, TextError


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"retrieval": "diverse"}, "retrieval is 'diverse'"),
        ({"prompt": "review"}, "prompt is 'review'"),
        ({"calibrate": {"method": "batch"}}, "calibrate is {'method': 'batch'}"),
        ({"seed": None}, "seed is None"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": True}, "seed is True"),
    ],
)
def test_parameters_of_another_kind_are_named(index, lm, wrong, message):
    with pytest.raises(ConfigError, match=message):
        classifier(index, lm, **wrong).fit()


def test_a_seed_from_an_array_is_a_seed(index, lm, tmp_path):
    shared = Retrieval(k=4, share=2)
    one, other = (classifier(index, lm, seed=seed, retrieval=shared).fit(TEXTS) for seed in (np.int64(3), 3))
    assert one.fitted_ == other.fitted_
    assert one.predict_proba(TEXTS).tolist() == other.predict_proba(TEXTS).tolist()
    one.save(tmp_path / "x.zicl-clf")


def test_a_model_folder_may_be_a_path_and_is_read_again_when_it_changed(index, lm_folder, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(lm_folder, folder)
    first = classifier(index, folder).fit()
    assert classifier(index, str(folder)).fit().lm_ is first.lm_
    other = tiny_model("llama")
    for parameter in other.parameters():
        parameter.data.mul_(1.1)
    other.save_pretrained(folder)
    second = classifier(index, str(folder)).fit()
    assert second.lm_.identity != first.lm_.identity
    assert second.predict_proba(TEXTS).tolist() != first.predict_proba(TEXTS).tolist()


def test_texts_of_an_array_are_the_same_texts(index, lm):
    shared = Retrieval(k=4, share=2, method="diverse", pool=8)
    one, other = (classifier(index, lm, retrieval=shared).fit(texts) for texts in (TEXTS, np.array(TEXTS)))
    assert one.predict_proba(TEXTS).tolist() == other.predict_proba(np.array(TEXTS)).tolist()
    assert stable_hash(np.str_("a")) == stable_hash("a")


def test_texts_to_fit_on_have_the_templates_fields(index, lm):
    made = classifier(index, lm, retrieval=Retrieval(k=2, share=2), prompt=PromptSettings(template="pair"))
    with pytest.raises(TextError, match="a pair of texts needs a template"):
        made.fit(TEXTS)
    assert made.fit([(text, "Yes.") for text in TEXTS]).predict([("It rains.", "It is wet.")]).shape == (1,)
    # Those that join the corpus are documents, whatever is asked about.
    joined = made.set_params(retrieval=Retrieval(k=2, include_fit_texts=True)).fit(DOCUMENTS)
    assert joined.predict([("It rains.", "It is wet.")]).shape == (1,)


def test_what_fit_would_learn_is_told(index, lm):
    assert classifier(index, lm).learns() == []
    shared = classifier(index, lm, retrieval=Retrieval(share=4), calibrate="batch")
    assert shared.learns() == ["batch calibration", "sharing demonstrations"]
