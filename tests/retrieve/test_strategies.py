"""Retrieval: always exactly k, distinct, never the input itself, and independent of other items."""

from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import DOCUMENTS, make_index
from tests.retrieve.conftest import write
from zicl.exceptions import RetrievalError, UnknownNameError
from zicl.inputs.pair import Pair
from zicl.retrieve.index import subset
from zicl.retrieve.strategies.base import RETRIEVERS, CandidateFilter, Query, Retrieved, Retriever, draw_rows
from zicl.retrieve.strategies.physical import Physical
from zicl.retrieve.strategies.random import Random

METHODS = RETRIEVERS.names()
QUERY = "The soup and the bread were cold."


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    paths = write(folder, {"a": DOCUMENTS[:5], "b": DOCUMENTS[5:]})
    return make_index(folder / "c.zicl", domains=paths)


@pytest.mark.parametrize("method", METHODS)
@given(
    k=st.integers(1, 12),
    seed=st.integers(0, 3),
    text=st.sampled_from([QUERY, DOCUMENTS[2], "The lamp on the stage kept failing."]),
)
def test_exactly_k_distinct_and_never_the_input(index, method, k, seed, text):
    found = RETRIEVERS.get(method)().retrieve(index, Query(text, seed), k)
    texts = [index.sentence(item.row).text for item in found]
    assert len(texts) == len({t.casefold() for t in texts}) == k
    excluded = {QUERY: set(), DOCUMENTS[2]: {2}}.get(text, {0})
    for item in found:
        assert index.sentence(item.row).document not in excluded
        if item.nearest is not None:
            assert index.sentence(item.nearest).document not in excluded
    similarities = [item.similarity for item in found if item.similarity is not None]
    assert similarities == sorted(similarities, reverse=True)


def test_neighbours_across_documents_are_the_rows_before_in_the_domain(index):
    """As the authors find them: the domain's previous sentence, whatever its document, and the last one before it."""
    found = Physical(neighbours="domain").retrieve(index, Query("no word of this is anywhere"), 12)
    assert any(index.sentence(item.row).document != index.sentence(item.nearest).document for item in found)
    first_of = {domain: int(index.indexed(domain)[0]) for domain in index.corpus.domains}
    last_of = {domain: int(index.indexed(domain)[-1]) for domain in index.corpus.domains}
    for item in found:
        domain = index.sentence(item.nearest).domain
        before = last_of[domain] if item.nearest == first_of[domain] else item.nearest - 1
        assert (item.row, index.sentence(item.row).domain) == (before, domain)
    assert [index.corpus.previous(row) for row in first_of.values()] == list(last_of.values())


def test_in_a_part_of_a_corpus_the_rows_left_out_are_passed_over(index):
    part = subset(index, share=0.4, seed=3)
    rows = sorted(int(row) for row in part.indexed("a"))
    assert [part.corpus.previous(row) for row in rows] == [rows[-1], *rows[:-1]]
    assert any(a - b > 1 for a, b in zip(rows[1:], rows, strict=False))


@given(k=st.integers(1, 8), first=st.sampled_from(DOCUMENTS), second=st.sampled_from(DOCUMENTS))
def test_no_two_sentences_are_shown_twice_as_a_pair(index, k, first, second):
    found = Physical().retrieve(index, Query(Pair(first.split(".")[0], second.split(".")[0])), k)
    assert len({frozenset((item.row, item.nearest)) for item in found}) == k


@pytest.mark.parametrize("method", METHODS)
def test_the_same_query_gives_the_same_rows_and_another_seed_may_not(index, method):
    def rows(seed):
        return [item.row for item in RETRIEVERS.get(method)().retrieve(index, Query(QUERY, seed), 6)]

    assert rows(1) == rows(1)
    if RETRIEVERS.get(method).draws:
        assert any(rows(1) != rows(seed) for seed in range(2, 6))


@pytest.mark.parametrize("method", ["nearest", "physical", "random", "domain-random"])
def test_a_larger_k_keeps_what_a_smaller_one_found(index, method):
    small = RETRIEVERS.get(method)().retrieve(index, Query(QUERY), 4)
    large = RETRIEVERS.get(method)().retrieve(index, Query(QUERY), 9)
    assert large[:4] == small


def test_a_larger_k_keeps_the_diverse_draw_too(index):
    small, large = ({i.row for i in RETRIEVERS.get("diverse")().retrieve(index, Query(QUERY), k)} for k in (4, 9))
    assert small < large


def test_physical_takes_the_neighbour_of_the_nearest(index):
    for item in Physical().retrieve(index, Query(QUERY), 8):
        assert item.row == index.neighbour(item.nearest)
        assert item.row != item.nearest


def test_one_sentence_paragraphs_are_passed_over(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Cold soup alone.\n\nCold soup again. Beside it stands bread.\n\nCold soup once more. A pear.\n")
    index = make_index(tmp_path / "c.zicl", path)
    texts = [index.sentence(item.row).text for item in Physical().retrieve(index, Query("Cold soup"), 4)]
    assert "Cold soup alone." not in texts
    with pytest.raises(RetrievalError, match="1 nearest sentences are alone in their paragraph") as error:
        Physical().retrieve(index, Query("Cold soup"), 5)
    assert "smaller k" in error.value.hint


def test_repeated_neighbours_are_replaced_through_the_next_nearest(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"I agree. Cold soup number {n}. Nice weather {n}." for n in range(6)))
    index = make_index(tmp_path / "c.zicl", path)
    texts = [index.sentence(item.row).text for item in Physical().retrieve(index, Query("Cold soup number"), 5)]
    assert len(set(texts)) == 5


def test_the_input_is_not_shown_even_as_a_duplicate_elsewhere(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Same here. Other one.\n\nThird one. Same here.\n\nFourth one. Fifth one.\n")
    index = make_index(tmp_path / "c.zicl", path)
    for method in METHODS:
        found = RETRIEVERS.get(method)().retrieve(index, Query("same here."), 2)
        assert "Same here." not in [index.sentence(item.row).text for item in found]


def test_random_inputs_are_one_set_for_all(index):
    sets = {
        tuple(i.row for i in Random().retrieve(index, Query(text), 5)) for text in (QUERY, "Other words.", "Third.")
    }
    assert len(sets) == 1


@pytest.mark.parametrize("method", METHODS)
def test_too_large_a_k_says_what_to_change(index, method):
    with pytest.raises(RetrievalError, match="of k = 31") as error:
        RETRIEVERS.get(method)().retrieve(index, Query(QUERY), 31)
    assert "k" in error.value.hint


@pytest.mark.parametrize("method", METHODS)
def test_the_input_is_left_in_on_request(index, method):
    found = RETRIEVERS.get(method)(exclude_self=False).retrieve(index, Query(DOCUMENTS[2]), 20)
    assert 2 in {index.sentence(item.row).document for item in found}


def test_draws_are_permutations_with_a_fixed_beginning():
    query = Query("x", 3)
    assert sorted(draw_rows(query, "p", 50)) == list(range(50))
    assert list(islice(draw_rows(query, "p", 50), 30)) == list(draw_rows(query, "p", 50))[:30]
    assert list(draw_rows(query, "p", 50)) != list(draw_rows(Query("x", 4), "p", 50))


def test_unknown_method():
    with pytest.raises(UnknownNameError, match="did you mean 'nearest'"):
        RETRIEVERS.get("nearst")


def test_a_corpus_that_is_too_small_is_an_error(index):
    with pytest.raises(RetrievalError, match="the corpus has no more sentences") as error:
        Physical().retrieve(index, Query(QUERY), 500)
    assert "a larger corpus" in error.value.hint


@dataclass(frozen=True)
class OneDomain(Retriever):
    """A retriever as a user would write it: the example of ``strategies.base``."""

    domain: str = "b"

    def retrieve(self, index, query, k):
        candidates = CandidateFilter(index, query)
        rows = (
            Retrieved(hit.row, hit.row, hit.similarity)
            for hit in candidates.hits()
            if index.sentence(hit.row).domain == self.domain and candidates.take(hit.row)
        )
        return candidates.collect(rows, k, "the domain has no more sentences", "use a smaller k")


def test_a_retriever_is_one_method_and_traits_have_defaults(index):
    retriever = OneDomain()
    assert (retriever.draws, retriever.shared, retriever.needs_neighbours) == (False, False, False)
    assert retriever == OneDomain("b") != OneDomain("a")
    retrieved = retriever.retrieve(index, Query(DOCUMENTS[5]), 12)
    assert {index.sentence(item.row).domain for item in retrieved} == {"b"}
    assert 5 not in {index.sentence(item.row).document for item in retrieved}
    with pytest.raises(
        RetrievalError, match=r"only 12 of k = 13 .* the domain has no more sentences; 3 sentences"
    ) as error:
        retriever.retrieve(index, Query(DOCUMENTS[5]), 13)
    # Its documents are records.
    assert error.value.hint == "use a smaller k"


@pytest.mark.parametrize("lines", [False, True])
def test_lines_are_mentioned_where_they_would_change_something(tmp_path, lines):
    path = tmp_path / "b.txt"
    path.write_text("\n".join(DOCUMENTS))
    index = make_index(tmp_path / "txt.zicl", domains={"b": [path]}, lines=lines)
    with pytest.raises(RetrievalError) as error:
        OneDomain().retrieve(index, Query("The soup was cold and thin."), 40)
    assert ("or build the corpus with --lines" in error.value.hint) == (not lines)


@pytest.mark.parametrize("method", METHODS)
def test_strategies_say_what_they_depend_on(index, method):
    retriever = RETRIEVERS.get(method)()
    rows = {
        (text, seed): tuple(item.row for item in retriever.retrieve(index, Query(text, seed), 5))
        for text in (QUERY, "We waited for the train.", "A bird sang.")
        for seed in range(3)
    }
    by_seed = [{rows[text, seed] for text, each in rows if each == seed} for seed in range(3)]
    by_text = [{rows[text, seed] for seed in range(3)} for text, _ in rows]
    assert retriever.shared == all(len(each) == 1 for each in by_seed)
    assert retriever.draws == any(len(each) > 1 for each in by_text)
