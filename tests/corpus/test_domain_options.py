"""Options that one domain of a corpus has to itself: its maximum number of paragraphs and its text column."""

import json

import pytest

from zicl.cli.corpus import parse_limits
from zicl.corpus.builder import build_corpus
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import find_sources
from zicl.exceptions import UsageError


def test_a_domain_has_its_own_limit_and_text_column(tmp_path):
    """One domain is whole, the other is a sample, and each is read from its own column."""
    paths = {}
    for name, column in (("tweets", "message"), ("news", "text")):
        paths[name] = tmp_path / f"{name}.jsonl"
        lines = [json.dumps({column: f"Report {n} of {name} begins. It ends."}) for n in range(8)]
        paths[name].write_text("\n".join(lines), encoding="utf-8")
    sources = find_sources([], {name: [path] for name, path in paths.items()}, text_columns={"tweets": "message"})
    options = BuildOptions(2, domain_paragraphs={"tweets": 5})
    corpus = build_corpus(sources, tmp_path / "c.zicl", options)
    kept = {domain["name"]: domain["paragraphs"] for domain in corpus.manifest["domains"]}
    assert kept == {"tweets": 5, "news": 2}
    assert corpus.manifest["options"]["domain_paragraphs"] == {"tweets": 5}


@pytest.mark.parametrize("entry", ["many", "tweets=", "tweets=0", "-3", "=5"])
def test_a_wrong_limit_is_an_error(entry):
    """Neither a word nor a number below one is a limit."""
    with pytest.raises(UsageError, match="expected N or NAME=N"):
        parse_limits([entry])
