"""zicl corpus add, remove and compact: a corpus that exists, changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zicl._util.offline import go_offline
from zicl.cli._corpus_summary import about, by_domain, summary
from zicl.cli._options import JsonOption, OfflineOption
from zicl.cli._progress import bars, say
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.corpus.store import Corpus

CorpusArgument = Annotated[Path, typer.Argument(help="A corpus folder.")]


def add(
    context: typer.Context,
    corpus: CorpusArgument,
    domain: Annotated[list[str] | None, typer.Option("--domain", help="NAME=PATH, as often as needed.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the larger corpus here, and keep the old one.")
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="The column or key that holds the text, if it is not the corpus' own.")
    ] = None,
    kind_of_file: Annotated[
        str | None, typer.Option("--format", help="txt, jsonl, csv or parquet, where the name does not say it.")
    ] = None,
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Add domains to a corpus and its index: only what is new is split and embedded. A killed one goes on."""
    from zicl.corpus.sources import find_sources
    from zicl.corpus.store import read_manifest

    if offline:
        go_offline()
    for file in context.args:
        raise UsageError(
            f"{file} was given without a domain: what is added is a domain of its own",
            hint=f"zicl corpus add {corpus} --domain {Path(file).name.partition('.')[0] or 'NAME'}={file}",
        )
    if not domain:
        raise UsageError("no domain was named", hint="for example --domain imdb=imdb.jsonl.gz")
    read_manifest(corpus)
    sources = find_sources([], by_domain(domain), kind=kind_of_file)
    with bars() as report:
        from zicl.retrieve.update import add_domains

        changed = add_domains(corpus, sources, output=output, text_column=text_column, offline=offline, report=report)
    _tell(changed, json_output)


def remove(
    corpus: CorpusArgument,
    domain: Annotated[list[str] | None, typer.Option("--domain", help="Its name, as often as needed.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Leave domains out of every search at once; 'zicl corpus compact' then frees their space."""
    from zicl.corpus.remove import remove_domains

    if not domain:
        raise UsageError("no domain was named", hint="for example --domain imdb")
    _tell(remove_domains(corpus, list(dict.fromkeys(domain))), json_output)


def compact(
    corpus: CorpusArgument,
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Free the space of removed domains. Sentences are numbered anew, as in a corpus built without them."""
    from zicl.corpus.store import read_manifest, removed

    if offline:
        go_offline()
    names = removed(read_manifest(corpus))
    with bars() as report:
        from zicl.retrieve.update import compact as free

        changed = free(corpus, offline=offline, report=report)
    say(f"freed the space of {', '.join(names)}" if names else f"{corpus} has no removed domains: nothing to free")
    _tell(changed, json_output)


def _tell(corpus: Corpus, json_output: bool) -> None:
    if json_output:
        typer.echo(json.dumps(about(corpus), indent=2, ensure_ascii=False))
    else:
        summary(corpus.manifest, str(corpus.path))
