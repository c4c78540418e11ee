"""Manifests of indexes that strangers wrote: whatever is wrong in one is named, and nothing outside is looked at."""

import json
import shutil

import numpy as np
import pytest

from tests.conftest import BagEncoder
from zicl.corpus.store import describe_files
from zicl.exceptions import CorpusDamagedError, ZICLError
from zicl.retrieve.index import Index


@pytest.fixture
def copy(index, tmp_path):
    shutil.copytree(index.corpus.path, tmp_path / "copy.zicl")
    return tmp_path / "copy.zicl"


def error_of(corpus, change):
    path = corpus / "index" / "manifest.json"
    changed = change(json.loads(path.read_text()))
    path.write_text(changed if isinstance(changed, str) else json.dumps(changed))
    with pytest.raises(ZICLError) as error:
        list(Index.open(corpus, encoder=BagEncoder()).nearest("cold soup"))
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m | {"encoder": None}, "encoder: it is not an object with keys"),
        (
            lambda m: m | {"encoder": {**m["encoder"], "dimension": "abc"}},
            "encoder.dimension: it is not a whole number",
        ),
        (lambda m: m | {"vectors": -1}, "vectors: it is too small"),
        (lambda m: m | {"vectors": 7}, "does not hold 7 numbers"),
        (lambda m: m | {"encoder": {**m["encoder"], "dimension": 7}}, "vectors of 32 numbers"),
        (lambda m: m | {"kind": "ivf-sq8"}, "has the files"),
        (lambda m: m | {"kind": ["flat"]}, "kind ['flat']"),
        (lambda m: m | {"files": {**m["files"], "../../x": m["files"]["rows.npy"]}}, "no others"),
        (lambda m: m | {"search": {"nprobe": "all"}}, "search.nprobe: it is not a whole number"),
        (lambda m: m | {"search": {"nprobes": 1}}, "did you mean 'nprobe'"),
        (lambda m: {}, "format: it is missing"),
        (lambda m: [], "not an object with keys"),
        (lambda m: "[" * 200_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_named(copy, change, said):
    error = error_of(copy, change)
    assert said in error
    assert error.count("is damaged") <= 1


def test_vectors_of_rows_that_are_not_there_are_refused(copy):
    rows = np.load(copy / "index" / "rows.npy")
    np.save(copy / "index" / "rows.npy", rows + 10_000)
    files = describe_files(copy / "index", ("vectors.faiss", "rows.npy"))
    assert "a row that the corpus does not have" in error_of(copy, lambda m: m | {"files": files})


def test_a_link_that_leads_out_of_the_corpus_is_not_followed(copy, tmp_path):
    (copy / "index").rename(tmp_path / "elsewhere")
    (copy / "index").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorpusDamagedError, match="leads out of"):
        Index.open(copy, encoder=BagEncoder())
