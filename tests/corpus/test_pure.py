"""Deduplication, sampling, paragraphs and document hashes: pure logic, tested by properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.corpus.dedup import DocumentHashes, SeenSentences, document_hash, same_text_hash
from zicl.corpus.reader import TextBlock
from zicl.corpus.sample import ParagraphSample
from zicl.corpus.splitter import LONGEST_PARAGRAPH, get_splitter, normalize_space, paragraphs
from zicl.exceptions import UnknownNameError


@given(st.lists(st.lists(st.sampled_from("abcdefg"))))
def test_first_occurrence_wins_across_batches(batches):
    seen, known = SeenSentences(), set()
    for batch in batches:
        expected = []
        for text in batch:
            expected.append(text not in known)
            known.add(text)
        hashes = np.array([same_text_hash(text) for text in batch], dtype=np.uint64)
        assert seen.first(hashes).tolist() == expected
    assert len(seen) == len(known)


@given(st.integers(1, 20), st.integers(0, 100), st.integers(0, 5))
def test_the_sample_is_the_n_smallest_priorities(limit, count, seed):
    sample = ParagraphSample(limit, seed, "d")
    offered = [priority for number in range(count) if (priority := sample.offer(number)) is not None]
    kept = [p for p, keep in zip(offered, sample.keeps(np.array(offered, dtype=np.uint64)), strict=True) if keep]
    everything = ParagraphSample(10**6, seed, "d")
    expected = sorted(everything.offer(number) for number in range(count))[:limit]
    assert sorted(kept) == expected


def test_every_item_is_equally_likely():
    counts = np.zeros(20)
    for seed in range(500):
        sample = ParagraphSample(5, seed, "d")
        offered = {n: p for n in range(20) if (p := sample.offer(n)) is not None}
        kept = sample.keeps(np.array(list(offered.values()), dtype=np.uint64))
        counts[[n for n, keep in zip(offered, kept, strict=True) if keep]] += 1
    # 125 expected each, standard deviation 9.7.
    assert counts.min() > 80
    assert counts.max() < 170


@given(st.lists(st.text(st.characters(categories=["L"]), min_size=1), max_size=70))
def test_paragraphs_keep_every_sentence_in_order(words):
    found = list(paragraphs(" ".join(words), str.split))
    assert [word for paragraph in found for word in paragraph] == " ".join(words).split()
    assert all(0 < len(paragraph) <= LONGEST_PARAGRAPH for paragraph in found)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.text(max_size=20).filter(str.strip)), max_size=12))
def test_documents_and_groups_are_recognised_by_their_whole_text(triples):
    triples = sorted(triples, key=lambda t: (t[0], t[1]))
    blocks = [TextBlock(3 * group + record, normalize_space(text), group) for group, record, text in triples]
    hashes, found = DocumentHashes(grouped=True), set()
    for block in blocks:
        found.update(hashes.feed(block.record, block.group, block.text))
    found.update(hashes.last())
    expected = set()
    for block in blocks:
        expected.add((block.record, document_hash("\n".join(b.text for b in blocks if b.record == block.record))))
        expected.add((block.record, document_hash("\n".join(b.text for b in blocks if b.group == block.group))))
    assert found == expected


@given(st.text().map(lambda text: " ".join(text.split())))
def test_a_sentence_has_the_hash_of_the_document_it_would_be(text):
    assert same_text_hash(text) == document_hash(text)


def test_splitters():
    text = "Dr. Gray left early. the soup was cold! Was it?"
    assert get_splitter("sentencex")(text) == ["Dr. Gray left early.", "the soup was cold!", "Was it?"]
    with pytest.raises(UnknownNameError, match="did you mean 'sentencex'"):
        get_splitter("sentencx")
