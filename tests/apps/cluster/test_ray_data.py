from hypothesis import given
from hypothesis import strategies as st

from zicl.apps.cluster.ray_data import windows


@given(st.lists(st.text(max_size=6), max_size=60), st.integers(1, 9), st.integers(1, 4))
def test_all_texts_in_order_in_groups_of_enough_characters(texts, characters, tasks):
    result = list(windows(texts, characters, tasks))
    groups = [group for window in result for group in window]
    assert [text for group in groups for text in group] == texts
    assert all(len(window) == tasks for window in result[:-1])
    assert all(sum(map(len, group)) >= characters for group in groups[:-1])
    assert all(sum(map(len, group[:-1])) < characters for group in groups)


def test_texts_are_read_one_window_at_a_time():
    read = []
    texts = (read.append(n) or "text" for n in range(100))
    next(windows(texts, characters=4, tasks=3))
    assert len(read) == 4
