"""First occurrences of sentences, and hashes of documents and groups."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zicl.corpus.dedup import DocumentHashes, SeenSentences, document_hash, same_text_hash
from zicl.corpus.reader import TextBlock
from zicl.corpus.splitter import normalize_space


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


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.text(max_size=20).filter(str.strip)), max_size=12))
def test_documents_and_groups_are_recognised_by_their_text(triples):
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
