import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import LabelError, SynonymError
from zicl.prompt import labelers as labeler
from zicl.prompt.labels import Label, Labels
from zicl.prompt.synonyms import SynonymSuggestion, _distinct, complete_synonyms, paper_table
from zicl.prompt.wordnet import same_root


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (["great"], "1 label given"),
        ([], "0 labels given"),
        (["great", "great"], "same name"),
        ([Label("a", "x"), Label("b", "X")], "same words"),
        (["great", " "], "empty"),
        (["great", "bad\0"], "NUL"),
        ("great", "is the text"),
        (5.0, "labels is float"),
        ([0, 1], "holds 0, not text"),
        ("missing.toml", "there is no file"),
    ],
)
def test_bad_labels(given_, message):
    with pytest.raises(LabelError, match=message):
        Labels.of(given_)


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
names = st.text(characters, min_size=1).filter(lambda t: t.strip())


@given(
    st.lists(
        st.tuples(names, st.lists(names, max_size=2), st.text(characters)),
        min_size=2,
        max_size=5,
        unique_by=lambda t: " ".join(t[0].split()).casefold(),
    )
)
def test_a_labels_file_says_what_was_written(tmp_path_factory, entries):
    labels = Labels(tuple(Label(name, "", tuple(synonyms), text) for name, synonyms, text in entries))
    path = tmp_path_factory.mktemp("labels") / "labels.toml"
    path.write_text(labels.to_toml(), encoding="utf-8", newline="")
    assert Labels.of(path) == labels


def test_strict_labels_file(tmp_path):
    path = tmp_path / "labels.toml"
    for text, message in [
        ('[[label]]\nname = "a"\ncolour = "red"\n', "unknown keys colour"),
        ('[[label]]\nwords = "a"\n', "no name"),
        ("[other]\n", "expected"),
        ("nonsense", "not TOML"),
    ]:
        path.write_text(text)
        with pytest.raises(LabelError, match=message):
            Labels.of(path)


def test_labels_from_a_mapping_and_by_hand():
    labels = Labels.of({"great": "good", "terrible": ["bad", "poor"]})
    assert labels["terrible"].synonyms == ("bad", "poor")
    with pytest.raises(LabelError, match="no label 'okay'"):
        labels.with_synonyms({"okay": ["fine"]})


def test_the_papers_tables():
    assert paper_table(["great", "terrible"]) == {"terrible": ("bad",), "great": ("good",)}
    assert paper_table(["negative", "neutral", "positive"])["neutral"] == ("normal",)
    assert paper_table(["terrible", "bad", "okay", "good", "great"])["great"] == ("excellent",)
    assert paper_table(["great", "awful"]) is None


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"great": "fine", "okay": "Fine"}, "synonym of both"),
        ({"great": "okay", "okay": "fine"}, "is itself the label"),
    ],
)
def test_synonyms_are_checked_as_a_whole(given_, message):
    with pytest.raises(SynonymError, match=message):
        complete_synonyms(Labels.of(given_), encoder=lambda: None, lm=None)


LABELS = Labels.of({"great": ["good", "fine"], "terrible": "bad"})


def test_every_synonym_is_shown_sometimes_and_no_original():
    words = {drawn.words for drawn in labeler.RandomLabels(labeler.synonym_words(LABELS)).label(range(200), 0, "x")}
    assert words == {"good", "fine", "bad"}


def test_missing_synonyms_are_all_named():
    with pytest.raises(SynonymError, match="a, b"):
        labeler.synonym_words(Labels.of({"a": (), "b": (), "c": "d"}))


@given(st.integers(0, 5), st.text(), st.integers(1, 20))
def test_nearer_demonstrations_keep_their_labels_when_k_grows(seed, key, k):
    drawer = labeler.RandomLabels(labeler.original_words(LABELS))
    assert drawer.label(range(k), seed, key) == drawer.label(range(20), seed, key)[:k]


def test_labels_are_drawn_uniformly():
    drawn = [
        d.label
        for key in range(300)
        for d in labeler.RandomLabels(labeler.original_words(LABELS)).label(range(4), 0, str(key))
    ]
    assert 0.45 < drawn.count("great") / len(drawn) < 0.55


def test_random_words_are_one_to_one_and_one_map_a_seed():
    words = [f"word{n}" for n in range(50)] + ["great"]
    maps = [labeler.random_words(LABELS, words, seed) for seed in range(20)]
    assert all(len({shown for (shown,) in m.values()}) == 2 for m in maps)
    assert all(("great",) not in m.values() for m in maps)
    assert maps[0] == labeler.random_words(LABELS, words, 0)
    assert len({tuple(m.values()) for m in maps}) > 10


def test_forms_of_a_word():
    assert same_root("sports", "sport")
    assert same_root("billing", "bills")
    assert same_root("technology", "technological")
    assert not same_root("sports", "athletics")


def test_no_word_is_first_for_two_labels():
    def options(*pairs):
        return [SynonymSuggestion(word, score, score, 0) for word, score in pairs]

    found = _distinct({"a": options(("x", 0.9), ("y", 0.5)), "b": options(("x", 0.8), ("z", 0.4))})
    assert [found[name][0].word for name in "ab"] == ["x", "z"]


def test_one_synonym_is_a_word_and_not_its_letters():
    assert Label("great", synonyms="good").synonyms == ("good",)
    assert Labels.of(["great", "poor"]).with_synonyms({"great": "good"})["great"].synonyms == ("good",)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["bug", "question", "idea"], ["bug", "bgu"], "row 3 has the option 'bgu', which is no label"),
        (["bug", "idea"], ["bug", "idea", "bug"], "row 3 has the option 'bug' twice"),
        (["bug", "question", "idea"], ["bug"], "row 3 has 1 options"),
        (3, ["a cat", "A  cat"], "row 3 has the option 'a cat' twice"),
        (2, ["a", "b", "c"], "row 3 has 3 options, the labels count 2"),
    ],
)
def test_wrong_options_name_the_row(labels, options, message):
    with pytest.raises(LabelError, match=message):
        Labels.of(labels).among(options, "row 3")
