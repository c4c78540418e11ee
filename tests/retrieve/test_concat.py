"""Two indexes as one."""

from tests.conftest import DOCUMENTS, BagEncoder, make_index
from tests.retrieve.conftest import write
from zicl.retrieve.concat import ConcatIndex
from zicl.retrieve.index import subset
from zicl.retrieve.strategies.base import Query
from zicl.retrieve.strategies.physical import Physical


def test_two_corpora_are_searched_as_one(tmp_path, index):
    path = tmp_path / "more.txt"
    path.write_text("The soup and the pears were warm. We stayed for hours.")
    joint = ConcatIndex(index, make_index(tmp_path / "m.zicl", path))
    retrieved = Physical().retrieve(joint, Query("The soup and the pears were warm indeed."), 5)
    assert joint.sentence(retrieved[0].row).text == "We stayed for hours."
    assert joint.sentence(retrieved[0].row).document == 10
    assert joint.around(retrieved[0].row, 2) == [retrieved[0].nearest] == [joint.neighbour(retrieved[0].row)]
    assert joint.documents_like(path.read_text()) == {10}
    assert len(joint.indexed()) == 32
    assert BagEncoder().identity == joint.encoder.identity


def test_a_subset_joins_an_index_of_another_kind(tmp_path):
    paths = write(tmp_path, {"a": DOCUMENTS[:6], "b": DOCUMENTS[6:]})
    indexes = [make_index(tmp_path / f"{kind}.zicl", domains=paths, kind=kind) for kind in ("flat", "ivf-sq8")]
    joint = ConcatIndex(subset(indexes[0], without=["a"]), indexes[1])
    assert len(joint.indexed()) == 12 + 30
    assert len(joint.indexed("a")) == 18
    hits = list(joint.nearest("The soup and the bread were cold."))
    assert len(hits) == 42
    assert {joint.sentence(hit.row).domain for hit in hits} == {"a", "b"}
