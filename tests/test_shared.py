"""On the evaluation data kept beside the repository; runs where it is present."""

import json
from itertools import islice
from pathlib import Path

import pytest

from zicl.corpus.builder import build_corpus
from zicl.corpus.shards import BuildOptions
from zicl.corpus.sources import find_sources
from zicl.lab.evaluate.examples import read_examples, read_test
from zicl.lab.evaluate.tasks import read_tasks

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.is_dir(), reason="the evaluation data is not beside this repository"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    domains = {p.name.split(".")[0]: [p] for p in sorted((DATA / "corpora").glob("*.jsonl.gz"))}
    return build_corpus(
        find_sources([], domains), tmp_path_factory.mktemp("shared") / "c.zicl", BuildOptions(max_paragraphs=500)
    )


def test_every_domain_is_read_and_sampled(corpus):
    domains = {domain["name"]: domain for domain in corpus.manifest["domains"]}
    assert len(domains) == 19
    assert all(0 < domain["paragraphs"] <= 500 for domain in domains.values())
    # Posts are mostly one sentence long and have no physical neighbour; reviews are not.
    assert domains["tweets"]["single"] / domains["tweets"]["paragraphs"] > 0.4
    assert domains["imdb_reviews"]["single"] / domains["imdb_reviews"]["paragraphs"] < 0.1


@pytest.mark.parametrize("task", ["CR", "SST2", "Amz", "Tweet"])
def test_no_test_input_is_a_document_of_the_corpus(corpus, task):
    with (DATA / "eval" / task / "test.jsonl").open(encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in islice(stream, 300)]
    assert sum(bool(corpus.documents_like(text)) for text in texts) == 0


@pytest.mark.parametrize("name", list(read_tasks()))
def test_every_task_of_the_paper_reads_its_data(name):
    task = read_tasks()[name]
    for split in ("test", "train"):
        examples = read_examples(task, DATA / "eval" / name / f"{split}.jsonl", split)
        assert {example.label for example in examples} == set(task.labels.names)
    assert len(read_test(task, DATA / "eval" / name / "test.jsonl")) <= task.sample
