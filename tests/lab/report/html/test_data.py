"""The embedded predictions say what the rows say, with the texts and nearest sentences they were computed with."""

import json
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from tests.conftest import make_index
from tests.lab.report.html.conftest import HOSTILE
from zicl.exceptions import ConfigError, OfflineError
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.report.build import make_report
from zicl.lab.report.html.data import page_data
from zicl.lab.report.html.predictions import (
    NearestSentences,
    StoredDemonstration,
    _Rows,
    nearest_sentences,
    stored_predictions,
)
from zicl.lab.report.html.sources import SourceTexts, read_texts
from zicl.retrieve.strategies.base import Query
from zicl.retrieve.strategies.physical import Physical
from zicl.retrieve.strategies.random import DomainRandom
from zicl.score.pipeline import INPUT_ITSELF


@pytest.fixture
def shown(evaluated):
    return stored_predictions("results", [evaluated.results], make_report([evaluated.results]).results, 99)


def test_every_row_is_there_with_its_scores_and_demonstrations(evaluated, shown):
    data = page_data(shown, evaluated.texts(), show=True).value
    rows = ResultsFolder.open(evaluated.results).table().to_pylist()
    assert len(data["predictions"]) == len(rows)
    stored = {(row["method"], row["example"]): row for row in rows}
    texts = {example.id: example.text for example in evaluated.world.examples["Days"]}
    for one in data["predictions"]:
        cell, example = data["cells"][one["cell"]], data["examples"][one["example"]]
        row = stored[cell["method"], example["id"]]
        assert example["text"] == [texts[example["id"]]]
        assert [cell["labels"][one[side]] for side in ("gold", "predicted")] == [row["gold"], row["predicted"]]
        assert one["scores"] == pytest.approx(row["log_likelihoods"], abs=1e-4)
        demos = [data["sentences"][place] for place, *_ in one["demos"]]
        step = -1 if row["similarities"] and None not in row["similarities"] else 1
        assert [demo["id"] for demo in demos] == row["demos"][::step]
        assert [data["words"][words] for _, words, *_ in one["demos"]] == row["demo_words"][::step]
        for demo in demos:
            train = cell["method"] == "icl-gold"
            known = {e.id: e.text for e in evaluated.world.training["Days"]} if train else None
            assert demo["text"] == (known[demo["id"]] if known else evaluated.index.sentence(int(demo["id"])).text)
    assert data["cells"][0]["method"] == "z-icl"


@pytest.mark.parametrize(
    ("similarities", "shown"),
    [([0.9, 0.5, 0.1], "abc"), ([0.1, 0.5, 0.9], "cba"), ([0.5, 0.1, 0.9], "cab"), ([None] * 3, "abc")],
)
def test_demonstrations_are_nearest_first_however_they_stand_in_the_prompt(similarities, shown):
    told = {"demos": list("abc"), "demo_words": list("xyz"), "demo_labels": list("xyz"), "similarities": similarities}
    rows = _Rows(pa.Table.from_pylist([{**told, "kept": 3, "input_cut": False}]), {"one": 0})
    demos, _ = rows.demos("one")
    assert "".join(demo.id for demo in demos) == shown


def test_the_input_among_its_own_demonstrations_is_told_as_such(evaluated, shown):
    own = next(each for each in shown if each.key.method == "icl-gold")
    first = own.shown[0]
    itself = replace(first, demos=(StoredDemonstration(INPUT_ITSELF, "great", "great", None, True),))
    data = page_data([replace(own, shown=(itself,))], evaluated.texts(), show=True)
    example = data.value["examples"][0]
    assert data.value["sentences"] == [
        {"id": first.example, "source": INPUT_ITSELF, "domain": "Days", "text": example["text"][0]}
    ]
    assert not any("sentences go by their ids" in note for note in data.notes)


def test_the_nearest_sentences_are_those_of_the_search(evaluated, shown):
    data = page_data(shown, evaluated.texts(), show=True).value
    seen = ambiguous = 0
    for one in data["predictions"]:
        method = data["cells"][one["cell"]]["method"]
        text = data["examples"][one["example"]]["text"][0]
        if method == "naive":
            assert all(nearest == [place] for place, *_, nearest in one["demos"])
        if method == "z-icl":
            found = {str(each.row): str(each.nearest) for each in Physical().retrieve(evaluated.index, Query(text), 4)}
            for place, *_, nearest in one["demos"]:
                seen += 1
                ids = [data["sentences"][other]["id"] for other in nearest]
                assert found[data["sentences"][place]["id"]] in ids
                ambiguous += len(ids) > 1
    assert seen == 4 * 11
    # Only where both sentences beside it are as similar can it still be either.
    assert ambiguous <= 4


def test_what_a_random_sentence_was_found_through_is_the_one_of_its_domain_that_is_as_similar(tmp_path):
    """Each sentence stands in both domains, in words of another order: for the encoder they are alike."""
    told = {
        "kitchen": ["The soup was cold. A cook left early.", "The bread was old. Plates broke at night."],
        "stage": ["Cold was the soup. Early a cook left.", "Old was the bread. At night plates broke."],
    }
    paths = {}
    for name, texts in told.items():
        paths[name] = [tmp_path / f"{name}.jsonl"]
        paths[name][0].write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    index, text = make_index(tmp_path / "two.zicl", domains=paths), "The soup was cold and old."
    found = DomainRandom().retrieve(index, Query(text), 4)
    demos = [StoredDemonstration(str(each.row), "great", "great", each.similarity, True) for each in found]
    nearest, config = NearestSentences(index), {"retrieval": {"method": "domain-random"}}
    similar = Counter((index.sentence(hit.row).domain, round(hit.similarity, 3)) for hit in index.nearest(text))
    alone = [similar[index.sentence(each.row).domain, round(each.similarity, 3)] == 1 for each in found]
    assert any(alone)
    assert nearest.of(text, demos, config) == [
        (each.nearest,) if own else () for each, own in zip(found, alone, strict=True)
    ]
    assert nearest.of(None, demos, config) == [()] * 4
    assert nearest_sentences(config)
    assert not nearest_sentences({"retrieval": {"method": "nearest"}})


def test_without_the_encoder_both_sentences_beside_are_named(evaluated, shown, monkeypatch):
    def gone(self, text):
        raise OfflineError("no encoder here", hint="")

    monkeypatch.setattr(type(evaluated.index), "nearest", gone)
    data = page_data(shown, evaluated.texts(), show=True)
    assert any("no encoder here" in note for note in data.notes)
    own = [one for one in data.value["predictions"] if data.value["cells"][one["cell"]]["method"] == "z-icl"]
    assert {len(nearest) for one in own for *_, nearest in one["demos"]} == {1, 2}


def test_without_texts_there_are_ids_only(evaluated, shown):
    data = page_data(shown, evaluated.texts(), show=False)
    written = json.dumps(data.value)
    assert HOSTILE[:20] not in written
    assert "soup" not in written
    assert "raw.jsonl" not in written
    assert all(set(sentence) == {"id"} for sentence in data.value["sentences"])
    assert any("left out" in note for note in data.notes)
    nothing = page_data(shown, SourceTexts(), show=True)
    assert "soup" not in json.dumps(nothing.value)
    assert any(note.startswith("All inputs go by their ids") for note in nothing.notes)


def test_what_is_left_out_is_said(evaluated):
    results = make_report([evaluated.results]).results
    some = stored_predictions("results", [evaluated.results], results, 3)
    assert {len(own.shown) for own in some} == {3}
    assert {own.total for own in some} == {11}
    assert (
        page_data(some, SourceTexts(), show=True).notes[0].startswith("18 of 66 predictions are here, 48 are left out")
    )


def test_other_data_and_another_corpus_are_refused(evaluated, tmp_path):
    manifest = ResultsFolder.open(evaluated.results).manifest
    experiment = evaluated.world.experiment.model_copy(update={"corpus": None})
    with pytest.raises(ConfigError, match="other test examples"):
        read_texts(experiment, [{**manifest, "tasks": {"Days": {**manifest["tasks"]["Days"], "hash": "0"}}}])
    with pytest.raises(ConfigError, match="other training examples"):
        read_texts(experiment, [{**manifest, "tasks": {"Days": {**manifest["tasks"]["Days"], "train_hash": "0"}}}])
    corpus = type(experiment)(tasks=["SST2"], methods=["majority"], corpus=str(evaluated.index.corpus.path)).corpus
    with pytest.raises(ConfigError, match="another corpus"):
        read_texts(experiment.model_copy(update={"corpus": corpus}), [{**manifest, "fingerprint": {"corpus": None}}])
