"""Building a corpus: read → split → sample → deduplicate → store, streaming and resumable.

Two steps. *Reading* writes shards of split paragraphs and notes after each how far it is, so that a
killed build goes on from its last shard. *Finishing* drops what the sample left out, marks duplicates
and writes the final files; it is quick and starts over if it is killed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from zicl import __version__
from zicl._util.files import check_own, empty, locked, move_in, read_json, storage_errors, write_text
from zicl._util.progress import Report, silent
from zicl._util.random import stable_hash
from zicl.corpus.dedup import Seen
from zicl.corpus.finish import write_corpus
from zicl.corpus.paragraphs import SplitMany
from zicl.corpus.shards import State, read_shards
from zicl.corpus.sources import Source
from zicl.corpus.store import FORMAT, MANIFEST, Corpus
from zicl.exceptions import EmptyCorpusError, StorageError, UsageError


@dataclass(frozen=True)
class BuildOptions:
    """How raw text becomes a corpus."""

    max_paragraphs: int = 10_000_000
    seed: int = 0
    splitter: str = "sentencex"
    text_column: str = "text"
    lines: bool = False
    encoding: str = "utf-8-sig"


_DEFAULTS = BuildOptions()
# A file beside the manifest that says which build wrote it; it depends on paths and times, the rest does not.
BUILD_KEY = "build.key"


def build_corpus(
    sources: Sequence[Source],
    output: str | Path,
    options: BuildOptions = _DEFAULTS,
    *,
    overwrite: bool = False,
    seen: Seen | None = None,
    split: SplitMany | None = None,
    report: Report = silent,
) -> Corpus:
    """Build the corpus ``output`` from ``sources``; a build that was killed goes on where it was.

    Sentences that were ``seen`` before, in the corpus this one is to follow, are stored but not indexed. ``split``
    splits the text elsewhere, as the splitter of the options would.
    """
    target = Path(output)
    if options.max_paragraphs < 1:
        raise UsageError(f"max_paragraphs is {options.max_paragraphs}; expected at least 1")
    if target.exists() and not overwrite:
        raise StorageError(f"{target} exists already", hint="choose another name with -o, or pass --overwrite")
    check_own(target, MANIFEST, "corpus")
    partial = target.with_name(target.name + ".partial")
    can_resume = all(source.path != "-" for source in sources)
    with locked(partial, f"{target} is being built by another process"):
        state = _resume(partial, build_key(sources, options), can_resume=can_resume)
        read_shards(sources, options, partial, state, report, split)
        if state.sentences == 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise EmptyCorpusError(
                "no sentence was found in " + ", ".join(source.name for source in sources[:5]),
                hint="check that the files hold text, and --text-column for .jsonl, .csv and .parquet",
            )
        with storage_errors(partial):
            whole = write_corpus(sources, options, partial, state, seen or Seen(), report)
            write_text(whole / BUILD_KEY, state.key + "\n")
            move_in(whole, target)
        shutil.rmtree(partial, ignore_errors=True)
    return Corpus.open(target, verify=False)


def build_key(sources: Sequence[Source], options: BuildOptions) -> str:
    """Identifies a build: its sources as they are now, and its options."""
    stamps = [(s.path, s.domain, s.format, s.size, os.stat(s.path).st_mtime_ns if s.is_file else 0) for s in sources]
    return f"{stable_hash(FORMAT, __version__, repr(stamps), repr(asdict(options))):032x}"


def _resume(partial: Path, key: str, *, can_resume: bool) -> State:
    """The state of a killed build of the same sources, or a fresh one."""
    note = partial / "state.json"
    if note.is_file() and can_resume:
        content = read_json(note)
        if content.get("key") == key and "first_shards" in content:
            return State(**content)
    # Another build, or standard input, which cannot be read twice: nothing of it can be used.
    empty(partial)
    return State(key)
