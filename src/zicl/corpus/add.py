"""Adding domains to a corpus that exists: only their text is read and split; the rest is copied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zicl._util.progress import Report, silent
from zicl.corpus.builder import BuildOptions, build_corpus
from zicl.corpus.dedup import Seen
from zicl.corpus.rewrite import write_joined
from zicl.corpus.sources import Source
from zicl.corpus.store import MANIFEST, Corpus
from zicl.exceptions import UsageError

_AT_ONCE = 1 << 16


def check_new(corpus: Corpus, sources: Sequence[Source]) -> None:
    """What is added are new domains of a corpus without removed ones."""
    if corpus.part.without:
        raise UsageError(
            f"{corpus.path} has removed domains that are still on disk: {', '.join(corpus.part.without)}",
            hint=f"free their space first: zicl corpus compact {corpus.path}",
        )
    for source in sources:
        if source.domain in corpus.domains:
            raise UsageError(
                f"{corpus.path} has a domain {source.domain!r} already",
                hint="give the new one another name, or remove the old one first: zicl corpus remove",
            )


def add_text(
    old: Corpus, sources: Sequence[Source], options: BuildOptions, work: Path, report: Report = silent
) -> Path:
    """Write the text of ``old`` followed by that of new domains to a folder in ``work``; reading them resumes."""
    place = work / "new"
    if (place / MANIFEST).is_file():
        new = Corpus.open(place, verify=False)
    else:
        new = build_corpus(sources, place, options, seen=_seen(old, report), report=report)
    whole = work / "whole"
    write_joined(old, new, whole, report)
    return whole


def _seen(corpus: Corpus, report: Report) -> Seen:
    """The distinct sentences of a corpus."""
    seen, rows = Seen(), corpus.indexed
    for start in range(0, len(rows), _AT_ONCE):
        report("comparing", start, len(rows))
        seen.first(corpus.text_hashes(rows[start : start + _AT_ONCE]))
    return seen
