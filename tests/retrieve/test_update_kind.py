"""Another kind of index from the same vectors."""

import pytest

from tests.conftest import BagEncoder, make_index
from tests.retrieve.changed import DOMAINS, Counting, contents, write
from zicl.corpus.store import Corpus
from zicl.corpus.update import remove_domains
from zicl.exceptions import ConfigError
from zicl.retrieve import builder as index_build
from zicl.retrieve.update import change_kind


@pytest.mark.parametrize(("old", "new"), [("flat", "ivf-pq"), ("flat", "hnsw"), ("ivf-sq8", "ivf-pq"), ("ivf", "flat")])
@pytest.mark.parametrize("removed", [[], ["film"]])
def test_another_kind_from_the_same_vectors_is_the_one_built_from_scratch(tmp_path, old, new, removed):
    paths = write(tmp_path, DOMAINS)
    indexes = [make_index(tmp_path / f"{kind}.zicl", domains=paths, kind=kind) for kind in (old, new)]
    for index in indexes:
        remove_domains(index.corpus.path, removed) if removed else None
    encoder = Counting()
    changed = change_kind(indexes[0].corpus.path, new, encoder=encoder)
    assert encoder.texts == []
    index_build.build_index(Corpus.open(indexes[1].corpus.path), BagEncoder(), kind=new)
    assert contents(changed.corpus.path / "index") == contents(indexes[1].corpus.path / "index")


def test_half_precision_does_not_become_full(tmp_path):
    index = make_index(tmp_path / "c.zicl", domains=write(tmp_path, DOMAINS), kind="ivf-pq")
    with pytest.raises(ConfigError, match="half precision"):
        change_kind(index.corpus.path, "auto", encoder=BagEncoder())


def test_vectors_in_half_precision_that_a_killed_change_left_are_not_taken_for_embedded_ones(tmp_path):
    index = make_index(tmp_path / "c.zicl", domains=write(tmp_path, DOMAINS), kind="ivf-sq8")

    def killed(stage, done, total=None, note=""):
        if stage == "indexing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        change_kind(index.corpus.path, "ivf-pq", encoder=BagEncoder(), report=killed)
    encoder = Counting()
    index_build.build_index(Corpus.open(index.corpus.path), encoder, kind="flat")
    assert len(encoder.texts) == len(index.corpus.indexed)
