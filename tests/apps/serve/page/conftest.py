"""A server of the page with tiny models, and a visitor to it."""

import json

import pytest

from tests.conftest import DOCUMENTS, make_index, tiny_lm

# A paragraph that would take over a page which trusts its corpus.
HOSTILE = (
    "The usher <b>waved</b> us in with a torch. "
    "<img src=x onerror=window.hacked=1> hung in the foyer of the old theatre. "
    "<script>window.hacked=1</script> was printed on every ticket & programme."
)


@pytest.fixture(scope="package")
def load(tmp_path_factory):
    """What loads the classifier."""
    from zicl.classifier import ZICLClassifier
    from zicl.config import Retrieval

    folder = tmp_path_factory.mktemp("page")
    (folder / "raw.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in [*DOCUMENTS, HOSTILE]))
    index = make_index(folder / "raw.zicl", folder / "raw.jsonl")
    return lambda: ZICLClassifier(
        index, ["terrible", "great"], lm=tiny_lm(), retrieval=Retrieval(k=8), method="z-icl"
    ).fit()


@pytest.fixture(scope="package")
def address(load):
    """One server for all tests of the page."""
    pytest.importorskip("fastapi")
    from tests.apps.serve.page.server import running

    with running(load) as found:
        yield found


@pytest.fixture
def visitor(browser, address):
    """A visitor who has just opened the page."""
    from tests.apps.serve.page.visitor import Visitor

    return Visitor(browser, address).open()
