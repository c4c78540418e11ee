import pytest

from zicl.exceptions import SynonymError
from zicl.prompt.labels import Labels
from zicl.prompt.synonyms import SynonymSuggestion, _distinct, complete_synonyms, paper_table


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


def test_no_word_is_first_for_two_labels():
    def options(*pairs):
        return [SynonymSuggestion(word, score, score, 0) for word, score in pairs]

    found = _distinct({"a": options(("x", 0.9), ("y", 0.5)), "b": options(("x", 0.8), ("z", 0.4))})
    assert [found[name][0].word for name in "ab"] == ["x", "z"]
