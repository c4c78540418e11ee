"""Kinds of index: codes find candidates and vectors re-rank them; built in parts, the same after a kill."""

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import BagEncoder, make_index
from tests.retrieve.conftest import killed_at
from zicl.corpus.builder import build_corpus
from zicl.corpus.sources import find_sources
from zicl.exceptions import ConfigError, CorpusDamagedError, StorageError
from zicl.retrieve import kinds
from zicl.retrieve.builder import build_index
from zicl.retrieve.index import Index
from zicl.retrieve.kinds import COMPRESSED, STORED, CompressedIndex, auto_kind, read_vectors, write_vectors
from zicl.retrieve.search import RowSelection, SearchParams, search

COUNT, DIMENSION = 900, 32
EVERYTHING = SearchParams(nprobe=10**6, refine=10**6)


def test_auto_is_exact_for_small_corpora():
    assert auto_kind("auto", 1000) == auto_kind("auto", 1_000_000) == "flat"
    assert auto_kind("auto", 2_000_000) == "ivf-sq8"
    assert auto_kind("auto", 27_000_000) == "ivf-pq"


def test_an_unknown_kind_names_the_known_ones_and_a_removed_kind_its_replacement():
    with pytest.raises(ConfigError, match="unknown kind of index 'tree'") as error:
        auto_kind("tree", 5)
    assert error.value.hint == "expected one of: auto, flat, ivf-sq8, ivf-pq"
    for removed in ("ivf", "hnsw"):
        with pytest.raises(ConfigError, match=f"unknown kind of index '{removed}'") as error:
            auto_kind(removed, 5)
        assert "ivf-sq8" in error.value.hint
        assert "flat" in error.value.hint


def clustered(count=COUNT, seed=0):
    """Unit vectors around a few centres, as embeddings are."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((20, DIMENSION))
    found = centres[generator.integers(20, size=count)] + 0.5 * generator.standard_normal((count, DIMENSION))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def built(folder, kind, content=None):
    content = clustered() if content is None else content
    folder.mkdir(exist_ok=True)
    parts, path = np.array_split(content, 4), folder / "vectors.faiss"
    write_vectors(kind, DIMENSION, len(content), parts, path, folder / "work")
    return kinds.read_vectors(kind, path)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "_PART", 200)
        return {kind: built(tmp_path_factory.mktemp(kind), kind) for kind in COMPRESSED}


def exact(index, query, count, numbers=None):
    """Return the nearest by the stored vectors, ties by id."""
    numbers = np.arange(index.ntotal) if numbers is None else numbers
    similarities = index.similarities(query, numbers)
    order = np.lexsort((numbers, -similarities))[:count]
    return numbers[order].tolist(), similarities[order].tolist()


@pytest.mark.parametrize("kind", COMPRESSED)
@given(seed=st.integers(0, 1000), count=st.integers(1, 60))
def test_all_lists_and_all_candidates_are_the_exact_search(indexes, kind, seed, count):
    index, query = indexes[kind], clustered(1, seed)[0]
    numbers, similarities = search(index, query, count, params=EVERYTHING)
    assert (numbers.tolist(), similarities.tolist()) == exact(index, query, count)


@pytest.mark.parametrize("kind", COMPRESSED)
@given(seed=st.integers(0, 1000), nprobe=st.integers(1, 30), refine=st.integers(1, 8), count=st.integers(1, 40))
def test_ordering_by_the_vectors_never_loses_a_neighbour(indexes, kind, seed, nprobe, refine, count):
    index, query = indexes[kind], clustered(1, seed)[0]
    true, plain = set(exact(index, query, count)[0]), CompressedIndex(index.lists, None)
    found = [
        len(true & set(search(each, query, count, params=SearchParams(nprobe=nprobe, refine=refine))[0].tolist()))
        for each in (plain, index)
    ]
    assert found[0] <= found[1]


@given(seed=st.integers(0, 1000), nprobe=st.integers(1, 30), more=st.integers(1, 30))
def test_more_lists_and_more_candidates_never_lose_a_neighbour(indexes, seed, nprobe, more):
    index, query = indexes["ivf-sq8"], clustered(1, seed)[0]
    true = set(exact(index, query, 16)[0])

    def hits(lists, candidates):
        return len(
            true & set(search(index, query, 16, params=SearchParams(nprobe=lists, refine=candidates))[0].tolist())
        )

    assert hits(nprobe, 8) <= hits(nprobe, 8 + more)
    # With all candidates compared, more lists can only add.
    every = index.ntotal // 16 + 1
    assert hits(nprobe, every) <= hits(nprobe + more, every)


@pytest.mark.parametrize("kind", COMPRESSED)
@given(numbers=st.lists(st.integers(0, COUNT - 1), min_size=1, unique=True), seed=st.integers(0, 1000))
def test_a_similarity_does_not_depend_on_which_others_are_asked_for(indexes, kind, numbers, seed):
    index, query = indexes[kind], clustered(1, seed)[0]
    together = index.similarities(query, np.array(numbers))
    alone = [float(index.similarities(query, np.array([number]))[0]) for number in numbers]
    assert together.tolist() == alone


@pytest.mark.parametrize("kind", COMPRESSED)
@given(seed=st.integers(0, 1000), share=st.floats(0.01, 0.9), count=st.integers(1, 60))
def test_a_part_is_searched_as_if_it_were_all(indexes, kind, seed, share, count):
    index, query = indexes[kind], clustered(1, seed)[0]
    chosen = np.random.default_rng(seed).random(COUNT) < share
    only = RowSelection.of(chosen)
    numbers, similarities = search(index, query, count, only, EVERYTHING)
    assert (numbers.tolist(), similarities.tolist()) == exact(index, query, count, np.flatnonzero(chosen))
    assert len(search(index, query, count, only, SearchParams(nprobe=1))[0]) == min(count, only.count)


@pytest.mark.parametrize("kind", COMPRESSED)
def test_recall_with_the_default_parameters(indexes, kind):
    index, found = indexes[kind], []
    for query in clustered(50, 7):
        true = set(exact(index, query, 16)[0])
        found.append(len(true & set(search(index, query, 16)[0].tolist())) / 16)
    assert np.mean(found) > 0.9


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("stop_after", [1, 2, 4, 6])
def test_a_killed_build_resumes_and_writes_the_same_bytes(tmp_path, monkeypatch, kind, stop_after):
    monkeypatch.setattr(kinds, "_PART", 200)
    built(tmp_path / "complete", kind)
    content, folder = clustered(), tmp_path / "killed"
    folder.mkdir()
    path, work = folder / "vectors.faiss", folder / "work"
    with pytest.raises(KeyboardInterrupt):
        write_vectors(kind, DIMENSION, COUNT, [content], path, work, killed_at(stop_after))
    assert not path.exists()
    done = {path: path.stat().st_mtime_ns for path in work.iterdir()}
    write_vectors(kind, DIMENSION, COUNT, [content], path, work)
    assert all(path.stat().st_mtime_ns == before for path, before in done.items())
    for name in ("vectors.faiss", STORED):
        assert (folder / name).read_bytes() == (tmp_path / "complete" / name).read_bytes()


def test_parts_are_what_one_piece_is(tmp_path, monkeypatch):
    complete = built(tmp_path / "one", "ivf-sq8")
    monkeypatch.setattr(kinds, "_PART", 100)
    parts = built(tmp_path / "parts", "ivf-sq8")
    for query in clustered(10, 3):
        assert search(complete, query, 20)[0].tolist() == search(parts, query, 20)[0].tolist()


def test_codes_alone_are_searched_and_give_no_vectors(indexes):
    codes = CompressedIndex(indexes["ivf-pq"].lists, None)
    assert len(search(codes, clustered(1, 5)[0], 16)[0]) == 16
    with pytest.raises(StorageError, match="codes only"):
        codes.reconstruct_batch(np.array([0]))


@pytest.mark.parametrize("count", [1, 2, 40])
@pytest.mark.parametrize("kind", COMPRESSED)
def test_hardly_any_vectors_are_enough(tmp_path, kind, count, capfd):
    content = clustered(count)
    assert search(built(tmp_path / "few", kind, content), content[0], 5)[0][0] == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", COMPRESSED)
def test_a_corpus_with_a_compressed_index(tmp_path, jsonl, kind):
    index = make_index(tmp_path / "c.zicl", jsonl, kind=kind)
    assert index.manifest["format"] == 2
    assert set(index.manifest["files"]) == {"vectors.faiss", "rows.npy", STORED}
    scratch = build_corpus(find_sources([jsonl]), tmp_path / "s.zicl")
    build_index(scratch, BagEncoder(), kind=kind)
    again = Index.open(scratch.path, encoder=BagEncoder())
    flat = make_index(tmp_path / "f.zicl", jsonl)
    for text in ("cold bread and soup", "the old train"):
        hits = list(index.nearest(text))
        assert hits == list(again.nearest(text))
        assert len(hits) == 30
        truth = sorted((hit.similarity for hit in flat.nearest(text)), reverse=True)
        assert [hit.similarity for hit in hits] == pytest.approx(truth, abs=1e-3)


def test_lists_that_are_in_another_file_are_refused(tmp_path):
    """An index of FAISS may name any file of the machine; the one of a stranger is not followed."""
    vectors = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    outside = tmp_path / "elsewhere" / "lists.bin"
    outside.parent.mkdir()
    quantizer = faiss.IndexFlatIP(8)
    index = faiss.IndexIVFScalarQuantizer(quantizer, 8, 2, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    lists = faiss.OnDiskInvertedLists(index.nlist, index.code_size, str(outside))
    index.replace_invlists(lists, False)
    index.add(vectors)
    folder = tmp_path / "index"
    folder.mkdir()
    faiss.write_index(index, str(folder / "vectors.faiss"))
    with pytest.raises(CorpusDamagedError, match="is damaged"):
        read_vectors("ivf-sq8", folder / "vectors.faiss")


@pytest.mark.parametrize("content", [b"", b"IxFI", b"not an index", b"IxFI" + b"\xff" * 60])
def test_files_that_are_no_index_are_refused(tmp_path, content):
    (tmp_path / "vectors.faiss").write_bytes(content)
    with pytest.raises(CorpusDamagedError):
        read_vectors("flat", tmp_path / "vectors.faiss")
