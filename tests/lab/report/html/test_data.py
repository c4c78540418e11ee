"""The embedded predictions match the rows, with the texts and nearest sentences they were computed with."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from tests.conftest import make_index
from tests.lab.report.html.conftest import HOSTILE
from zicl.exceptions import OfflineError
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.report.build import make_report
from zicl.lab.report.html.data import NearestSentences, page_data, shows_neighbours
from zicl.lab.report.html.predictions import StoredDemonstration, stored_predictions
from zicl.lab.report.html.sources import SourceTexts
from zicl.retrieve.strategies.base import Query
from zicl.retrieve.strategies.physical import Physical
from zicl.retrieve.strategies.random import DomainRandom
from zicl.score.pipeline import INPUT_ITSELF


@pytest.fixture
def shown(evaluated):
    return stored_predictions("results", [evaluated.results], make_report([evaluated.results]).results, 99)


def test_every_row_is_there_with_its_scores_and_demonstrations(evaluated, shown):
    data = page_data(shown, evaluated.texts(), show_texts=True).value
    rows = ResultsFolder.open(evaluated.results).table().to_pylist()
    assert len(data["predictions"]) == len(rows)
    stored = {(row["method"], row["example"]): row for row in rows}
    texts = {example.id: example.text for example in evaluated.context.examples["Days"]}
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
            known = {e.id: e.text for e in evaluated.context.training["Days"]} if train else None
            assert demo["text"] == (known[demo["id"]] if known else evaluated.index.sentence(int(demo["id"])).text)
    assert data["cells"][0]["method"] == "z-icl"


def test_the_input_among_its_demonstrations_is_marked(evaluated, shown):
    cell = next(each for each in shown if each.key.method == "icl-gold")
    first = cell.shown[0]
    itself = replace(first, demos=(StoredDemonstration(INPUT_ITSELF, "great", "great", None, True),))
    data = page_data([replace(cell, shown=(itself,))], evaluated.texts(), show_texts=True)
    example = data.value["examples"][0]
    assert data.value["sentences"] == [
        {"id": first.example, "source": INPUT_ITSELF, "domain": "Days", "text": example["text"][0]}
    ]
    assert not any("sentences go by their ids" in note for note in data.notes)


def test_the_nearest_sentences_are_those_of_the_search(evaluated, shown):
    data = page_data(shown, evaluated.texts(), show_texts=True).value
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


def test_a_random_sentence_was_found_through_the_one_of_its_domain_with_its_similarity(tmp_path):
    """Each sentence is in both domains, with its words in another order: the encoder gives equal vectors."""
    documents = {
        "kitchen": ["The soup was cold. A cook left early.", "The bread was old. Plates broke at night."],
        "stage": ["Cold was the soup. Early a cook left.", "Old was the bread. At night plates broke."],
    }
    paths = {}
    for name, texts in documents.items():
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
        (each.nearest,) if unique else () for each, unique in zip(found, alone, strict=True)
    ]
    assert nearest.of(None, demos, config) == [()] * 4
    assert shows_neighbours(config)
    assert not shows_neighbours({"retrieval": {"method": "nearest"}})


def test_neighbours_across_documents_and_planted_ones(tmp_path):
    paths = {"only": [tmp_path / "only.jsonl"]}
    paths["only"][0].write_text("".join(json.dumps({"text": f"Text {n}."}) + "\n" for n in range(5)))
    index = make_index(tmp_path / "one.zicl", domains=paths)
    demos = [StoredDemonstration("2", "great", "great", 0.5, True)]
    config = {"retrieval": {"method": "physical", "neighbours": "domain"}}
    nearest = NearestSentences(index)
    # Sentence 2 is shown because 3, of another document, is near.
    assert nearest.of(None, demos, config) == [(3,)]
    assert nearest.of(None, demos, {"retrieval": {"method": "physical"}}) == [()]
    # A planted sentence may have led to it, and is not in the corpus.
    assert nearest.of(None, demos, {**config, "planted": True}) == [()]


def test_without_the_encoder_both_neighbours_are_shown(evaluated, shown, monkeypatch):
    def gone(self, text):
        raise OfflineError("no encoder here", hint="")

    monkeypatch.setattr(type(evaluated.index), "nearest", gone)
    data = page_data(shown, evaluated.texts(), show_texts=True)
    assert any("no encoder here" in note for note in data.notes)
    ours = [one for one in data.value["predictions"] if data.value["cells"][one["cell"]]["method"] == "z-icl"]
    assert {len(nearest) for one in ours for *_, nearest in one["demos"]} == {1, 2}


def test_without_texts_there_are_ids_only(evaluated, shown):
    data = page_data(shown, evaluated.texts(), show_texts=False)
    written = json.dumps(data.value)
    assert HOSTILE[:20] not in written
    assert "soup" not in written
    assert "raw.jsonl" not in written
    assert all(set(sentence) == {"id"} for sentence in data.value["sentences"])
    assert any("left out" in note for note in data.notes)
    nothing = page_data(shown, SourceTexts(), show_texts=True)
    assert "soup" not in json.dumps(nothing.value)
    assert any(note.startswith("All inputs go by their ids") for note in nothing.notes)


def test_a_note_says_how_many_are_left_out(evaluated):
    results = make_report([evaluated.results]).results
    some = stored_predictions("results", [evaluated.results], results, 3)
    assert {len(cell.shown) for cell in some} == {3}
    assert {cell.total for cell in some} == {11}
    assert (
        page_data(some, SourceTexts(), show_texts=True)
        .notes[0]
        .startswith("18 of 66 predictions are here, 48 are left out")
    )
