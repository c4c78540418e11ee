import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl._util.printable import visible
from zicl.exceptions import LabelError
from zicl.prompt.labels import Label, Labels


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (["great"], "1 label given"),
        ([], "0 labels given"),
        (["great", "great"], "same name"),
        ([Label("a", "x"), Label("b", "X")], "same words"),
        (["great", " "], "empty"),
        (["great", "\u200b\u2060"], "empty"),
        ([Label("great"), "\u3164"], "empty"),
        (["great", "great\u200b"], "same name"),
        (["gr\u00adeat", "bad", "\ufeffgreat"], "same name"),
        (["Great", "gr\u200beat"], "same words"),
        (["great", "a\ud800"], "broken character"),
        (["great", "bad\0"], "NUL"),
        (["caf\u00e9", "Cafe\u0301"], "same words"),
        (["great ", "bad"], "white space around it"),
        (["great", "b\rad"], "line break"),
        (["great", "b\u2028ad"], "line break"),
        ("great", "is the text"),
        (5.0, "labels is float"),
        ([0, 1], "holds 0, not text"),
        ("missing.toml", "there is no file"),
    ],
)
def test_bad_labels(given_, message):
    with pytest.raises(LabelError, match=message):
        Labels.of(given_)


@pytest.mark.parametrize("field", ["words", "synonyms", "description"])
def test_no_part_of_a_label_holds_half_of_a_character(field):
    with pytest.raises(LabelError, match="broken character"):
        Label("great", **{field: "good\udcff"})


@pytest.mark.parametrize("field", ["words", "synonyms"])
def test_words_can_be_seen(field):
    with pytest.raises(LabelError, match="empty"):
        Label("great", **{field: "\u200b"})


def test_what_is_invisible_alone_may_be_a_part_of_a_label():
    # Joined characters of an emoji, a Persian word, and two flags that differ in their tags.
    names = ["👩\u200d💻", "می\u200cخواهم", "❤\ufe0f", "🏴\U000e0067\U000e007f", "🏴\U000e0073\U000e007f"]
    assert Labels.of(names).names == tuple(names)


@pytest.mark.parametrize("items", [["a", "b"], "ab", {"a": [], "b": []}, 2, [Label("a"), "b"], None])
def test_labels_of_something_else_than_labels(items):
    with pytest.raises(LabelError, match="not a Label") as error:
        Labels(items)
    assert "Labels.of" in error.value.hint


def test_a_list_of_labels_is_as_good_as_a_tuple():
    labels = Labels([Label("a"), Label("b")])
    assert labels == Labels((Label("a"), Label("b")))
    assert hash(labels) == hash(Labels.of(["a", "b"]))


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
# A line; words and synonyms are given as any text.
names = st.text(characters, min_size=1).map(lambda t: " ".join(t.split())).filter(visible)


@given(
    st.lists(
        st.tuples(names, st.lists(names, max_size=2), st.text(characters)),
        min_size=2,
        max_size=5,
        unique_by=lambda t: unicodedata.normalize("NFC", visible(t[0]).casefold()),
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


def test_one_synonym_is_a_word_and_not_its_letters():
    assert Label("great", synonyms="good").synonyms == ("good",)
    assert Labels.of(["great", "poor"]).with_synonyms({"great": "good"})["great"].synonyms == ("good",)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["bug", "question", "idea"], ["bug", "bgu"], "row 3 has the option 'bgu', which is no label"),
        (["bug", "idea"], ["bug", "idea", "bug"], "row 3 has the option 'bug' twice"),
        (["bug", "question", "idea"], ["bug"], "row 3 has 1 option"),
        (3, ["a cat", "A  cat"], "row 3 has the option 'a cat' twice"),
        (2, ["a", "b", "c"], "row 3 has 3 options, the labels count 2"),
    ],
)
def test_wrong_options_name_the_row(labels, options, message):
    with pytest.raises(LabelError, match=message):
        Labels.of(labels).among(options, "row 3")
