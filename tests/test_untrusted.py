"""Saved classifiers of strangers: what is wrong in one is named, and nothing outside of it is read unasked."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zicl
from tests.conftest import DOCUMENTS, BagEncoder
from zicl import ZICLClassifier
from zicl.exceptions import ZICLError
from zicl.persistence import read_folder

TEXTS = ["The soup was cold.", "A bold little film."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One that learned from a pile: it has all files that there may be."""
    place = tmp_path_factory.mktemp("untrusted") / "x.zicl-clf"
    texts = [sentence for text in DOCUMENTS for sentence in text.split(". ")]
    ZICLClassifier(labels=["film", "food", "train"], encoder=BagEncoder()).fit(texts).save(place)
    return place


@pytest.fixture
def content(folder):
    path = folder / "classifier.json"
    good = path.read_text()
    yield json.loads(good)
    path.unlink()
    path.write_text(good)


def load(folder):
    return zicl.load(folder, encoder=BagEncoder(), offline=True)


def error_of(folder, content):
    (folder / "classifier.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ZICLError) as error:
        load(folder).classify(TEXTS)
    return str(error.value)


def changed(content, *place, to):
    """Return the content with another value at a place."""
    if not place:
        return to
    return {**content, place[0]: changed(content[place[0]], *place[1:], to=to)}


def test_a_good_one_is_loaded(folder, content):
    assert read_folder(folder).model_dump(mode="json").items() <= content.items()
    assert len(load(folder).classify(TEXTS)) == 2


def test_what_people_add_is_not_read(folder, content):
    expected = load(folder).predict_proba(TEXTS).tolist()
    pile = {**content["fitted"]["pile"], "note": "of spring"}
    added = {**changed(content, "fitted", "pile", to=pile), "note": "mine"}
    (folder / "classifier.json").write_text(json.dumps(added))
    assert load(folder).predict_proba(TEXTS).tolist() == expected


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (["settings"], None, "settings: it is not an object with keys"),
        (["settings", "retrieval"], {"kk": 1}, "settings.retrieval.kk: there is no such key; did you mean 'k'"),
        (["settings", "scoring", "dtype"], "float8", "settings.scoring.dtype: it is not"),
        (["fitted", "priors"], {"encoder": {"film": "much"}}, "fitted.priors.encoder.film: it is not a number"),
        (["fitted", "priors"], {"encoder": {"film": -1.0}}, "it is too small"),
        (["fitted", "priors"], [1, 2], "fitted.priors: it is not an object with keys"),
        (["fitted", "pile", "shares"], [0.5, 0.5], "fitted.pile.shares: it has 2 numbers for 3 labels"),
        (["fitted", "pile", "weights"], "../../x", "fitted.pile.weights"),
        (["encoder", "name"], "a\0b", "control characters"),
        (["encoder", "name"], "x" * 300, "at most 255 bytes"),
        (["encoder"], {"name": "/etc", "local": True, "identity": "0"}, "not an absolute one"),
        (["encoder"], {"name": "C:\\models", "local": True, "identity": "0"}, "not an absolute one"),
        (["encoder"], {"name": "../../etc", "local": False, "identity": "0"}, "not a path"),
        (["lm"], {"name": "gguf:/tmp/x.gguf", "local": False, "identity": "0"}, "not a path"),
        (["corpus"], {"path": "~/corpus"}, "corpus.path"),
        (["labels"], ["film"], "film"),
        (["settings", "decision"], {"none": "other"}, "differ in whether a text may have no label"),
        (["settings", "calibration"], {"method": "batch"}, "differ in whether label priors are subtracted"),
        (["settings", "scoring"], {"experts": ["direct"]}, "lm is null"),
        (["seed"], "0", "seed: it is not a whole number"),
        (["format"], [5], "has format [5]"),
        (["kind"], ["distilled"], "kind: it is not a string"),
        (["kind"], "rules", "unknown kind of saved classifier"),
        (["kind"], "distilled", "weights: it is missing"),
    ],
)
def test_what_is_wrong_is_named(folder, content, place, value, said):
    content.setdefault("kind", None)
    edited = changed(content, *place, to=value)
    error = error_of(folder, {key: item for key, item in edited.items() if (key, item) != ("kind", None)})
    assert said in error
    assert "pydantic" not in error
    assert len(error) < 2000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ("[]", "an object with keys"),
        ("", "Expecting value"),
        ('{"format": 5, "format": 5}', "the key 'format' occurs twice"),
        ('{"format": ' + "1" * 5000 + "}", "damaged"),
    ],
)
def test_what_is_no_such_json_is_named(folder, content, text, said):
    error = error_of(folder, text)
    assert said in error
    assert str(folder / "classifier.json") in error


@pytest.mark.parametrize("name", ["classifier.json", "labels.toml", "pile.safetensors"])
def test_a_link_that_leads_out_of_the_folder_is_not_followed(folder, tmp_path, name):
    import shutil

    copy = tmp_path / "copy.zicl-clf"
    shutil.copytree(folder, copy)
    (copy / name).rename(tmp_path / "elsewhere")
    (copy / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ZICLError, match="leads out of"):
        load(copy)


def test_weights_of_another_shape_or_type_are_refused(folder, tmp_path):
    import shutil

    from safetensors.numpy import save_file

    from zicl.score.pile import Linear

    copy = tmp_path / "copy.zicl-clf"
    shutil.copytree(folder, copy)
    for weights in (np.ones((7, 32)), np.ones(3), np.full((3, 32), np.nan)):
        linear = Linear(weights, np.ones(3))
        save_file({"weights": weights, "offsets": linear.offsets}, copy / "pile.safetensors")
        content = json.loads((copy / "classifier.json").read_text())
        content["fitted"]["pile"]["weights"] = linear.identity
        assert "not what was written" in error_of(copy, content)
    linear = Linear(np.ones((3, 7)), np.ones(3))
    save_file({"weights": linear.weights, "offsets": linear.offsets}, copy / "pile.safetensors")
    content["fitted"]["pile"]["weights"] = linear.identity
    assert "has weights for 7 dimensions" in error_of(copy, content)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data(), value=json_values)
def test_no_value_of_any_key_ends_in_a_traceback(folder, data, value):
    path = folder / "classifier.json"
    good = path.read_text()
    content = json.loads(good)
    place, here = [], content
    while isinstance(here, dict) and here and (not place or data.draw(st.booleans())):
        place.append(data.draw(st.sampled_from(sorted(here))))
        here = here[place[-1]]
    try:
        path.write_text(json.dumps(changed(content, *place, to=value)))
        load(folder).classify(TEXTS)
    except ZICLError:
        pass
    finally:
        path.write_text(good)
