"""The longest common run of words, against the obvious way of finding it."""

from hypothesis import given
from hypothesis import strategies as st

from zicl.lab.evaluate.overlap import longest_overlaps, words_of

line = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join)


def plain(text, sentences):
    words = words_of(text)
    runs = {tuple(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
    found = [len(r) for r in runs for s in sentences if f" {' '.join(r)} " in f" {' '.join(words_of(s))} "]
    return max(found, default=0)


@given(st.lists(line, max_size=4), st.lists(line, max_size=4))
def test_it_is_the_longest(texts, sentences):
    assert longest_overlaps(texts, sentences) == [plain(text, sentences) for text in texts]


def test_capitals_and_punctuation_do_not_count():
    assert longest_overlaps(["The soup, cold and thin!"], ["It was the soup cold AND thin, again."]) == [5]
