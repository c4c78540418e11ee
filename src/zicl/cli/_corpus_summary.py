"""What the corpus commands say of a corpus, and how they are told of domains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from zicl.cli._progress import say
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.corpus.store import Corpus


def by_domain(entries: Sequence[str]) -> dict[str, list[str]]:
    """The paths of each domain, from entries ``NAME=PATH``.

    >>> by_domain(["imdb=a.txt", "imdb=b.txt"])
    {'imdb': ['a.txt', 'b.txt']}
    """
    domains: dict[str, list[str]] = {}
    for entry in entries:
        name, equals, path = entry.partition("=")
        if not equals or not name.strip() or not path.strip():
            raise UsageError(f"--domain {entry!r}: expected NAME=PATH", hint="for example --domain imdb=imdb.jsonl.gz")
        domains.setdefault(name, []).append(path)
    return domains


def about(corpus: Corpus) -> dict[str, Any]:
    """The manifests of a corpus and of its index, for machines."""
    from zicl._util.files import read_json
    from zicl.retrieve.builder import FOLDER, MANIFEST

    note = corpus.path / FOLDER / MANIFEST
    return {"corpus": corpus.manifest, "index": read_json(note) if note.is_file() else None}


def summary(manifest: dict[str, Any], name: str, say: Callable[[str], None] = say) -> None:
    """What a corpus holds, for people."""
    sentences, paragraphs = manifest["sentences"], manifest["paragraphs"]
    duplicates = sentences - manifest["indexed"]
    say(f"{name}: {sentences:,} sentences in {paragraphs:,} paragraphs of {manifest['documents']:,} documents")
    say(f"  {duplicates:,} duplicates ({duplicates / sentences:.1%}), stored but not indexed")
    say(
        f"  {manifest['single'] / paragraphs:.1%} of the paragraphs have one sentence, which has no physical neighbour"
        " and is passed over by z-icl"
    )
    for domain in manifest["domains"] if len(manifest["domains"]) > 1 else []:
        if domain.get("removed"):
            say(f"  {domain['name']}: removed; its space is freed by: zicl corpus compact {name}")
            continue
        say(
            f"  {domain['name']}: {domain['sentences']:,} sentences, {domain['paragraphs']:,} of "
            f"{domain['paragraphs_read']:,} paragraphs, {domain['single'] / max(1, domain['paragraphs']):.1%} single"
        )
