"""Tuning: measurements are true, the fastest over the target is picked, and nothing but the pick is written."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import BagEncoder, make_index
from tests.retrieve.conftest import contents, write
from zicl.corpus.sources import find_sources
from zicl.corpus.update import remove_domains
from zicl.exceptions import ConfigError, StorageError
from zicl.retrieve import tune as module
from zicl.retrieve.index import Index
from zicl.retrieve.kinds import COMPRESSED
from zicl.retrieve.search import SearchParams
from zicl.retrieve.tune import (
    MemoryUse,
    SearchMeasurement,
    Tuning,
    TuningQueries,
    exact_search,
    parameter_grid,
    run_queries,
    tune,
)
from zicl.retrieve.update import add_domains

WORDS = ["lamp", "soup", "train", "bird", "bread", "phone", "song", "clue", "pear", "tile", "village", "window"]


def texts(seed, count):
    generator = np.random.default_rng(seed)
    return [". ".join(" ".join(generator.choice(WORDS, 5)) + f" {n} {m}" for m in range(3)) for n in range(count)]


@pytest.fixture
def made(tmp_path):
    return write(tmp_path, {"a": texts(1, 120), "b": texts(2, 60)})


def test_the_pick_is_kept_and_used_and_nothing_else_changes(tmp_path, made):
    index = make_index(tmp_path / "c.zicl", domains=made, kind="ivf-pq")
    before, identity = contents(index.corpus.path), index.identity
    found = tune(index.corpus.path, queries=20)
    assert found.pick is not None
    assert found.pick.recall >= 0.95
    assert found.pick.milliseconds == min(each.milliseconds for each in found.measured if each.recall >= 0.95)
    after = contents(index.corpus.path)
    assert [path for path in before if before[path] != after[path]] == ["index/manifest.json"]
    assert before.keys() == after.keys()
    tuned = Index.open(index.corpus.path, encoder=BagEncoder())
    assert tuned.manifest == {**index.manifest, "search": found.pick.params.given()}
    assert tuned.identity != identity
    with pytest.raises(StorageError, match="was changed since"):
        next(index.nearest("the soup"))
    add_domains(index.corpus.path, find_sources([], write(tmp_path, {"c": texts(3, 5)})), encoder=BagEncoder())
    assert Index.open(index.corpus.path).manifest["search"] == tuned.manifest["search"]


def test_searches_use_the_parameters_of_the_manifest(tmp_path, made):
    index = make_index(tmp_path / "c.zicl", domains=made, kind="ivf-sq8")
    path = index.corpus.path / "index" / "manifest.json"
    every = index._vectors.lists.nlist
    path.write_text(json.dumps({**index.manifest, "search": {"nprobe": every, "refine": 10**6}}))
    hits = Index.open(index.corpus.path, encoder=BagEncoder())._search("the soup", 16)
    path.write_text(json.dumps({**index.manifest, "search": {"nprobe": 1}}))
    assert Index.open(index.corpus.path, encoder=BagEncoder())._search_params.nprobe == 1
    flat = make_index(tmp_path / "f.zicl", domains=made)
    assert [s for _, s in hits] == pytest.approx([s for _, s in flat._search("the soup", 16)], abs=1e-3)


def test_other_kinds_are_measured_and_the_index_stays_what_it_is(tmp_path, made):
    index = make_index(tmp_path / "c.zicl", domains=made)
    before = contents(index.corpus.path)
    found = tune(index.corpus.path, kinds=["ivf-sq8", "ivf-pq", "auto"], queries=10)
    assert found.measured[0].kind == "flat"
    assert {each.kind for each in found.measured} == {"flat", "ivf-sq8", "ivf-pq"}
    assert found.pick == found.measured[0]
    assert found.pick.recall == 1
    assert contents(index.corpus.path) == before
    assert max(each.recall for each in found.measured if each.kind == "ivf-sq8") >= 0.95
    if found.pick.memory.anonymous is not None:
        assert all(each.memory.anonymous > 1 << 20 and each.memory.mapped > 1 << 20 for each in found.measured)


def test_removed_domains_are_neither_queries_nor_results(tmp_path, made):
    index = make_index(tmp_path / "c.zicl", domains=made, kind="ivf-sq8")
    remove_domains(index.corpus.path, ["a"])
    rest = Index.open(index.corpus.path, encoder=BagEncoder())
    sample = module._sample_queries(rest, rest._vectors, 30, 0)
    used = set(rest.vector_ids().tolist())
    assert set(sample.ids.tolist()) | set(np.concatenate(sample.truth).tolist()) <= used
    assert all(query_id not in truth for query_id, truth in zip(sample.ids, sample.truth, strict=True))
    assert tune(index.corpus.path, queries=10).pick is not None


def test_what_cannot_be_measured_is_an_error(index):
    with pytest.raises(ConfigError, match="cannot be reached"):
        tune(index.corpus.path, target=1.5)
    with pytest.raises(ConfigError, match="unknown kind"):
        tune(index.corpus.path, kinds=["tree"])
    with pytest.raises(ConfigError, match="0 queries"):
        tune(index.corpus.path, queries=0)


def measured(kind, recall, milliseconds):
    return SearchMeasurement(kind, SearchParams(), recall, milliseconds, MemoryUse(None, None))


@given(rows=st.lists(st.builds(measured, st.sampled_from(["ivf-sq8", "ivf-pq"]), st.floats(0, 1), st.floats(0.01, 9))))
def test_the_fastest_over_the_target_is_picked(rows):
    tuning = Tuning("ivf-sq8", 10, 10, 0.9, rows)
    good = [row for row in rows if row.recall >= 0.9]
    same = [row for row in good if row.kind == "ivf-sq8"]
    assert (tuning.pick is None) == (not same)
    assert tuning.pick is None or tuning.pick.milliseconds == min(row.milliseconds for row in same)
    assert tuning.better is None or tuning.better.milliseconds == min(row.milliseconds for row in good)


@given(lists=st.integers(1, 30_000), kind=st.sampled_from(COMPRESSED))
def test_parameters_grow_up_to_all_lists(lists, kind):
    for row in parameter_grid(kind, lists):
        probes = [params.nprobe for params in row]
        assert probes == sorted(set(probes))
        assert probes[-1] == lists


def test_recall_counts_the_first_sixteen_without_the_query():
    truth = np.arange(1, 17).reshape(1, -1)
    queries = TuningQueries(np.zeros((1, 4), np.float32), np.array([0]), truth, 64)
    answers = {1.0: np.arange(17), 0.5: np.r_[0, 1:9, 20:60, 9:17], 0.0: np.arange(20, 50)}
    for recall, answer in answers.items():
        assert run_queries(lambda _, answer=answer: answer, queries)[0] == recall


@given(count=st.integers(1, 30), block=st.integers(1, 50), seed=st.integers(0, 99))
def test_exact_search_in_blocks_is_one_matrix_product(count, block, seed):
    generator = np.random.default_rng(seed)
    content, queries = generator.standard_normal((60, 8)), generator.standard_normal((3, 8))

    class Flat:
        ntotal = 60

        def reconstruct_batch(self, numbers):
            return content[numbers].astype(np.float32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        found, similarities = exact_search(Flat(), queries.astype(np.float32), count, np.arange(0, 60, 2))
    truth = 2 * np.argsort(-(queries @ content[::2].T), axis=1)[:, :count]
    assert found.tolist() == truth.tolist()
    assert np.all(np.diff(similarities, axis=1) <= 0)
