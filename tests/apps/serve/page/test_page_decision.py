"""The page of classifiers that allow none of the labels, or several."""

import pytest

pytest.importorskip("selenium")

from tests.apps.serve.page.server import ask, running
from tests.browser import console_errors
from tests.score.test_decision import BOTH, FILM, LABELS, ODD, SOUP, TRAIN, WideEncoder
from zicl import ZICLClassifier

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("settings", "pile", "text"),
    [({"none": "other"}, SOUP + TRAIN + FILM + ODD, ODD[0]), ({"multi": True}, SOUP + TRAIN + FILM + BOTH, BOTH[0])],
)
def test_the_labels_of_a_text_are_shown(browser, settings, pile, text):
    from tests.apps.serve.page.visitor import Visitor

    with running(lambda: ZICLClassifier(labels=LABELS, encoder=WideEncoder(), **settings).fit(pile)) as address:
        visitor = Visitor(browser, address).open()
        [answer] = ask(address, text=text)
        assert visitor.classify(text) == ", ".join(answer["labels"])
        shown = visitor.texts("#single .verdict .bar.first .word")
        assert sorted(shown) == sorted(answer["labels"])
        assert len(visitor.texts("#single .verdict .bar")) == len(answer["probabilities"])
        assert not console_errors(browser)
