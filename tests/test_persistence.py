import json
import shutil

import numpy as np
import pytest

import zicl
from tests.conftest import BagEncoder, make_index
from zicl import ZICLClassifier
from zicl.config import PromptSettings, Retrieval
from zicl.corpus.store import Corpus
from zicl.exceptions import (
    ConfigError,
    CorpusDamagedError,
    CorpusError,
    CorpusMissingError,
    ModelError,
    StorageError,
    UsageError,
)
from zicl.retrieve.builder import build_index
from zicl.retrieve.index import Index

TEXTS = ["The soup was cold.", "A bold little film."]


@pytest.fixture
def saved(index, lm_folder, tmp_path):
    clf = ZICLClassifier(
        index,
        {"great": "good", "bad soup": "cold soup"},
        str(lm_folder),
        retrieval=Retrieval(k=3),
        prompt=PromptSettings(template=("I: {input}", "L: {label}")),
        seed=7,
        method="z-icl",
    ).fit()
    clf.save(tmp_path / "x.zicl-clf")
    return clf, tmp_path / "x.zicl-clf"


def load(path, index=None, **more):
    from zicl.retrieve.index import Index

    found = index or Index.open(path.parent / "raw.zicl", encoder=BagEncoder())
    return zicl.load(path, index=found, **more)


def test_a_loaded_classifier_gives_the_same_numbers(saved):
    clf, path = saved
    again = load(path)
    assert again.decision_function(TEXTS).tolist() == clf.decision_function(TEXTS).tolist()
    assert again.labels_ == clf.labels_
    assert sorted(p.name for p in path.iterdir()) == ["classifier.json", "labels.toml"]
    assert again.settings_ == clf.settings_


def test_a_corpus_may_be_in_a_folder_of_any_name(tmp_path, saved):
    # With a wide space, which is no control character.
    folder = tmp_path / "my\u3000data"
    folder.mkdir()
    shutil.move(tmp_path / "raw.zicl", folder / "raw.zicl")
    moved = load(tmp_path / "x.zicl-clf", Index.open(folder / "raw.zicl", encoder=BagEncoder()))
    moved.save(folder.parent / "moved.zicl-clf")
    index = Index.open(folder / "raw.zicl", encoder=BagEncoder())
    assert load(folder.parent / "moved.zicl-clf", index).labels_ == moved.labels_


def test_nothing_is_overwritten(saved):
    clf, path = saved
    before = (path / "classifier.json").stat().st_mtime_ns
    clf.save(path)
    assert (path / "classifier.json").stat().st_mtime_ns == before
    with pytest.raises(StorageError, match="exists already"):
        clf.set_params(seed=8).fit().save(path)


def test_what_changed_is_named(saved, tmp_path, jsonl, lm_folder):
    _, path = saved
    other = tmp_path / "other.txt"
    other.write_text("Quite other text. Of two sentences.")
    with pytest.raises(CorpusDamagedError, match="not the corpus"):
        load(path, make_index(tmp_path / "o.zicl", other))
    content = json.loads((path / "classifier.json").read_text())
    (path / "classifier.json").write_text(json.dumps({**content, "lm": {**content["lm"], "identity": "0"}}))
    with pytest.raises(ModelError, match="not the one"):
        load(path)
    (path / "classifier.json").write_text(json.dumps({**content, "settings": {"retrieval": {"kk": 1}}}))
    with pytest.raises(UsageError, match="kk"):
        load(path)
    (path / "classifier.json").write_text(json.dumps({**content, "format": 9}))
    with pytest.raises(UsageError, match="format 9"):
        load(path)
    (path / "classifier.json").write_text(json.dumps(content))
    shutil.rmtree(tmp_path / "raw.zicl")
    with pytest.raises(CorpusMissingError, match="not where it was"):
        zicl.load(path)
    with pytest.raises(UsageError, match="not a saved classifier"):
        zicl.load(tmp_path)


def test_an_index_that_is_searched_in_another_way_is_noticed(saved, tmp_path):
    _, path = saved
    place = tmp_path / "raw.zicl"
    assert zicl.load(path, offline=True).index_.manifest["kind"] == "flat"
    build_index(Corpus.open(place), BagEncoder(), kind="ivf-sq8")
    with pytest.raises(CorpusError, match="flat then, ivf-sq8 now"):
        zicl.load(path, offline=True)
    assert load(path).index_.manifest["kind"] == "ivf-sq8"


def test_an_index_that_was_tuned_again_is_noticed_and_used_where_it_is_named(saved, tmp_path):
    _, path = saved
    manifest = tmp_path / "raw.zicl" / "index" / "manifest.json"
    tuned = {**json.loads(manifest.read_text()), "search": {"nprobe": 3}}
    manifest.write_text(json.dumps(tuned))
    with pytest.raises(CorpusError, match="built or tuned again"):
        zicl.load(path, offline=True)
    assert zicl.load(path, index=tmp_path / "raw.zicl", offline=True).index_.manifest["search"] == {"nprobe": 3}


def test_a_corpus_that_lost_a_domain_is_noticed_and_a_part_in_memory_is_not_saved(tmp_path, lm_folder):
    from zicl.corpus.update import remove_domains
    from zicl.retrieve.index import subset

    paths = {name: [tmp_path / f"{name}.txt"] for name in ("films", "trains")}
    for name, (path,) in paths.items():
        path.write_text("\n\n".join(f"We saw {n} {name} today. It rained on all {n} of them." for n in range(5)))
    index = make_index(tmp_path / "raw.zicl", domains=paths)
    clf = ZICLClassifier(index, ["great", "bad"], str(lm_folder), method="naive", retrieval=Retrieval(k=3))
    clf.fit().save(tmp_path / "x.zicl-clf")
    with pytest.raises(UsageError, match="a part of a corpus"):
        clf.set_params(index=subset(index, without=["films"])).fit().save(tmp_path / "y.zicl-clf")
    remove_domains(index.corpus.path, ["films"])
    with pytest.raises(CorpusDamagedError, match=r"has changed since x\.zicl-clf was saved"):
        load(tmp_path / "x.zicl-clf")


def test_what_is_saved_is_what_predicts_whatever_was_set_since(saved, tmp_path):
    clf, path = saved
    clf.set_params(seed=8, method="naive").save(tmp_path / "y.zicl-clf")
    assert (tmp_path / "y.zicl-clf" / "classifier.json").read_text() == (path / "classifier.json").read_text()


def test_a_fit_that_failed_leaves_what_was_fitted(saved, tmp_path):
    clf, path = saved
    other = tmp_path / "other.txt"
    other.write_text("Quite other text. Of two sentences.\n\nAnd a third. And a fourth.")
    before = clf.predict_proba(TEXTS).tolist()
    small = make_index(tmp_path / "small.zicl", other)
    # Found when the corpus is open and the model is loaded.
    with pytest.raises(ConfigError, match="must contain"):
        clf.set_params(index=small, prompt=PromptSettings(template=("no field", "L: {label}"))).fit()
    clf.save(tmp_path / "y.zicl-clf")
    assert (tmp_path / "y.zicl-clf" / "classifier.json").read_text() == (path / "classifier.json").read_text()
    assert clf.predict_proba(TEXTS).tolist() == before


def test_clusters_of_an_array_survive_being_saved(index, lm_folder, tmp_path):
    texts = np.array([f"{text} Again." for text in TEXTS] + TEXTS)
    shared = Retrieval(k=3, share=2, method="diverse", pool=8)
    clf = ZICLClassifier(index, {"great": "good", "poor": "bad"}, str(lm_folder), retrieval=shared, method="z-icl").fit(
        texts
    )
    clf.save(tmp_path / "x.zicl-clf")
    assert load(tmp_path / "x.zicl-clf").predict_proba(texts).tolist() == clf.predict_proba(texts).tolist()
