"""A map has every text with its label and reasons; a large file is sampled by a seed; the command checks first."""

import csv
import json

import numpy as np
import pytest

from tests.apps.distill.conftest import SENTENCES
from tests.conftest import BagEncoder
from zicl import ZICLClassifier
from zicl.apps.map.layout import lay_out
from zicl.apps.map.run import LabelledText, make_map
from zicl.exceptions import TextError

LABELS = ["film", "food", "train"]


@pytest.fixture
def rows():
    return [LabelledText(str(n), text, LABELS[n % 3], n / 40, 0.5) for n, text in enumerate(SENTENCES)]


def test_a_classifier_draws_its_texts():
    classifier = ZICLClassifier(None, LABELS, encoder=BagEncoder(), method="z-icl+").fit(SENTENCES)
    found = classifier.map(SENTENCES, layout="pca")
    predictions = classifier.classify(SENTENCES)
    assert [row.label for row in found.rows] == [each.label for each in predictions]
    assert (
        found.rows[0].reasons[1]
        == f"encoder says {LABELS[max(range(3), key=predictions[0].terms['encoder'].__getitem__)]}"
    )
    assert found.points.shape == (len(SENTENCES), 2)
    assert "srcdoc" in found._repr_html_()


def test_a_large_file_is_sampled_by_its_seed(rows):
    def ids(seed):
        found = make_map(rows, BagEncoder().encode, layout="pca", limit=10, seed=seed)
        assert found.total == len(rows)
        return [row.id for row in found.rows]

    assert len(ids(1)) == 10
    assert ids(1) == ids(1) != ids(2)


class DriftingEncoder(BagEncoder):
    """An encoder whose last digits depend on the place in its batch."""

    def encode(self, texts):
        return super().encode(texts) + 1e-7 * np.arange(len(texts), dtype=np.float32)[:, None]


@pytest.mark.parametrize("layout", ["pca", "tsne"])
def test_equal_texts_are_drawn_at_one_place(rows, layout):
    equal = [LabelledText(str(n), "The same soup. " + " " * (n % 2), "film") for n in range(30)]
    for others in (rows, []):
        found = make_map([*others, *equal], DriftingEncoder().encode, layout=layout)
        assert found.points.shape == (len(others) + 30, 2)
        assert len(np.unique(found.points[len(others) :], axis=0)) == 1
        assert len({found.outlying[n] for n in range(len(others), len(found.rows))}) == 1
    assert found.points.tolist() == [[0, 0]] * 30


def test_the_page_has_all_and_nothing_gets_out_of_its_data(rows):
    planted = LabelledText("<i>", "</script><script>document.title='planted'</script>" + "a" * 900, "<b>one</b>")
    data = make_map([*rows, planted], BagEncoder().encode, layout="pca", title="<u>title</u>")
    page = data.to_html()
    assert "<script>document.title" not in page
    assert "<u>title" not in page
    values = data.data()
    assert values["label"][-1] == 3
    assert values["margin"][-1] is None
    assert values["text"][-1].endswith(" …")
    assert {len(values[name]) for name in ("x", "y", "id", "text", "label", "margin")} == {len(rows) + 1}


def test_a_map_of_two_texts_is_refused(rows):
    with pytest.raises(TextError, match="shows nothing"):
        make_map(rows[:2], BagEncoder().encode)


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "labelled.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text", "predicted", "margin", "probability", "p:film", "p:food", "term:pile:film"])
        writer.writerows([n, text, "film", 0.3, 0.65, 0.65, 0.35, 1.5] for n, text in enumerate(SENTENCES))
    return path


def test_a_labelled_file_becomes_a_page(run, labelled, tmp_path, encoder_folder):
    options = ("--encoder", encoder_folder, "--layout", "pca", "--json")
    code, out, err = run("map", labelled, "-o", tmp_path / "m.html", *options)
    assert code == 0, err
    assert json.loads(out)["texts"] == len(SENTENCES)
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "film 65%, food 35%" in page
    assert "pile says film" in page


def test_a_labelled_file_is_drawn_by_the_columns_it_was_labelled_by(run, tmp_path, encoder_folder):
    source, target = tmp_path / "pairs.csv", tmp_path / "labelled.csv"
    with source.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["key", "question", "answer"])
        # The first texts are all alike.
        writer.writerows([f"r{n}", "What was it like?", text] for n, text in enumerate(SENTENCES))
    options = ("--encoder", encoder_folder, "--offline")
    columns = ("--text-column", "question", "--pair-column", "answer", "--id-column", "key")
    labels = ("--labels", "film,food", "--method", "encoder")
    code, _, err = run("classify", "--file", source, *columns, *labels, "-o", target, *options)
    assert code == 0, err
    code, out, err = run("map", target, "-o", tmp_path / "m.html", "--layout", "pca", "--json", *options)
    assert code == 0, err
    assert json.loads(out)["texts"] == len(SENTENCES)
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert '"id":["r0","r1"' in page
    assert f"What was it like? {SENTENCES[0]}" in page


def test_whatever_a_table_holds_is_drawn(run, tmp_path, encoder_folder):
    """A label may be 0, a row may have no text, and columns may be called as those of zicl and hold something else."""
    rows = [{"text": text, "kind": n % 2, "p:note": "high", "term:x": 1} for n, text in enumerate(SENTENCES)]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"text": None, "kind": 0}]))
    options = ("--label-column", "kind", "--encoder", encoder_folder, "--layout", "pca", "--json")
    code, out, err = run("map", path, "-o", tmp_path / "m.html", *options)
    assert code == 0, err
    assert json.loads(out)["texts"] == len(SENTENCES)
    assert "not on the map: 1 of 31 rows" in err
    assert '"labels":["0","1"]' in (tmp_path / "m.html").read_text(encoding="utf-8")


def test_a_map_shows_the_encoder_that_the_classifier_asks(index):
    """A corpus has its own encoder, also where no demonstration is shown."""
    classifier = ZICLClassifier(index, LABELS, method="z-icl+").fit(SENTENCES)
    found = classifier.map(SENTENCES, layout="pca")
    vectors = classifier.ensemble_.encoder_expert.text_vectors(SENTENCES)
    assert found.points == pytest.approx(lay_out(vectors, "pca"), abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "map.png"], "the page is an HTML file"),
        (["-o", "m.html", "--label-column", "topic"], "has no column 'topic'"),
        (["-o", "m.html", "--label-column", "predict"], "did you mean 'predicted'?"),
        (["-o", "m.html", "--layout", "umap"], "expected auto, tsne, pca"),
    ],
)
def test_mistakes_are_said_before_anything_is_loaded(run, labelled, arguments, message):
    code, _, err = run("map", labelled, *arguments)
    assert code == 2
    assert message in err
    assert "encoding" not in err
