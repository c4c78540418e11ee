"""An open corpus: documents by their text, neighbours, and damage."""

import json
import shutil

import pytest

from tests.conftest import DOCUMENTS
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.corpus.store import Corpus
from zicl.exceptions import CorpusDamagedError, CorpusMissingError, CorpusVersionError


def test_a_document_is_found_by_its_text(tmp_path, jsonl):
    corpus = build_corpus(find_sources([jsonl]), tmp_path / "c.zicl")
    assert corpus.documents_like("  " + DOCUMENTS[3].replace(" ", "  ")) == {3}
    assert corpus.documents_like("the keeper never speaks.") == {3}
    assert corpus.documents_like("Something else.") == set()


def test_a_txt_file_is_found_by_its_text_and_by_its_paragraphs(tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("I love it. So warm.\n\nThe soup was cold. I left.\n")
    corpus = build_corpus(find_sources([path]), tmp_path / "c.zicl")
    assert corpus.documents_like(path.read_text()) == {0, 1}
    assert corpus.documents_like("I love it.") == {0}


def test_rows_around_stay_in_their_paragraph(index):
    corpus = index.corpus
    for row in range(len(corpus)):
        paragraph = {sentence.row for sentence in corpus.paragraph(row)}
        assert set(corpus.around(row, 1)) == {other for other in paragraph if abs(other - row) == 1}
        assert set(corpus.around(row, 99)) == paragraph - {row}


def test_damage_is_detected_and_named(tmp_path, jsonl):
    folder = build_corpus(find_sources([jsonl]), tmp_path / "c.zicl").path
    content = (folder / "sentences.arrow").read_bytes()
    (folder / "sentences.arrow").write_bytes(content[:900] + b"x" + content[901:])
    with pytest.raises(CorpusDamagedError, match=r"sentences\.arrow has other contents"):
        Corpus.open(folder)
    (folder / "sentences.arrow").write_bytes(content[:-5])
    with pytest.raises(CorpusDamagedError, match="bytes instead of"):
        Corpus.open(folder)
    (folder / "sentences.arrow").unlink()
    with pytest.raises(CorpusDamagedError, match="is missing"):
        Corpus.open(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(CorpusDamagedError, match="manifest"):
        Corpus.open(folder)
    (folder / "manifest.json").write_text(json.dumps({"format": 99, "zicl": "9.9"}))
    with pytest.raises(CorpusVersionError, match="format 99"):
        Corpus.open(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(CorpusMissingError, match="not a finished corpus"):
        Corpus.open(folder)
    shutil.rmtree(folder)
    with pytest.raises(CorpusMissingError, match="there is no corpus"):
        Corpus.open(folder)
