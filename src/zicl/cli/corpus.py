"""zicl corpus: build, add, remove, compact, info, show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl._util.counts import counted
from zicl._util.process import go_offline, use_threads
from zicl.cli.cluster_options import OnOption, connected, parse_cluster
from zicl.cli.console import print_json, print_line, print_status, progress_bars
from zicl.cli.options import JsonOption, OfflineOption
from zicl.cli.preflight import preflight
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.apps.cluster.connect import Cluster
    from zicl.corpus.shards import BuildOptions
    from zicl.corpus.sources import Source
    from zicl.corpus.splitter import SplitMany
    from zicl.corpus.store import Corpus
    from zicl.retrieve.builder import EmbedShards
    from zicl.retrieve.encoder import Encoder


def by_domain(entries: Sequence[str]) -> dict[str, list[str]]:
    """Return the paths of each domain, from entries ``NAME=PATH``.

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


def parse_limits(entries: Sequence[str] | None) -> tuple[int | None, dict[str, int]]:
    """Return the maximum number of paragraphs, and those of domains that have their own.

    >>> parse_limits(["2000", "tweets=50000"])
    (2000, {'tweets': 50000})
    """
    limit, limits = None, dict[str, int]()
    for entry in entries or []:
        name, equals, number = entry.rpartition("=")
        if not number.strip().isdecimal() or int(number) < 1 or (equals and not name):
            raise UsageError(f"--max-paragraphs {entry!r}: expected N or NAME=N, with N at least 1")
        if name:
            limits[name] = int(number)
        else:
            limit = int(number)
    return limit, limits


def about(corpus: Corpus) -> dict[str, Any]:
    """Return the manifests of a corpus and of its index, for machines."""
    from zicl.retrieve.builder import FOLDER
    from zicl.retrieve.manifest import read_index_manifest

    index = read_index_manifest(corpus.path) if (corpus.path / FOLDER).is_dir() else None
    return {"corpus": corpus.manifest, "index": index}


def summary(manifest: dict[str, Any], name: str, say: Callable[[str], None] = print_status) -> None:
    """Print what a corpus holds, for people."""
    sentences, paragraphs = manifest["sentences"], manifest["paragraphs"]
    duplicates = sentences - manifest["indexed"]
    say(f"{name}: {counted(sentences, 'sentence')} in {counted(paragraphs, 'paragraph')}{_documents(manifest)}")
    say(f"  {counted(duplicates, 'duplicate')} ({duplicates / sentences:.1%}), stored but not indexed")
    say(
        f"  {manifest['single'] / paragraphs:.1%} of the paragraphs have one sentence, which has no physical neighbour"
        " and is passed over by z-icl"
    )
    for domain in manifest["domains"] if len(manifest["domains"]) > 1 else []:
        if domain.get("removed"):
            say(f"  {domain['name']}: removed; its space is freed by: zicl corpus compact {name}")
            continue
        say(
            f"  {domain['name']}: {counted(domain['sentences'], 'sentence')}, {domain['paragraphs']:,} of "
            f"{domain['paragraphs_read']:,} paragraphs, {domain['single'] / max(1, domain['paragraphs']):.1%} single"
        )


def _documents(manifest: dict[str, Any]) -> str:
    """Return how many documents the paragraphs are from, and how many were read for them.

    >>> _documents({"documents": 25000, "documents_kept": 812})
    ' from 812 documents; 25,000 documents were read'
    >>> _documents({"documents": 25000})
    '; 25,000 documents were read'
    """
    read, kept = manifest["documents"], manifest.get("documents_kept")
    if read == kept:
        return f" of {counted(read, 'document')}"
    known = "" if kept is None else f" from {counted(kept, 'document')}"
    return f"{known}; {counted(read, 'document was', 'documents were')} read"


CorpusArgument = Annotated[Path, typer.Argument(help="A corpus folder.")]
_MOST_PARAGRAPHS = 10_000_000
MaxParagraphsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Maximum paragraphs per domain, a uniform sample; NAME=N for one domain; may be repeated. [10000000]"
    ),
]


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
    max_paragraphs: Annotated[
        list[str] | None,
        typer.Option(help="NAME=N: maximum paragraphs of a new domain, if not the corpus' own; may be repeated."),
    ] = None,
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Add domains to a corpus and its index: only new text is split and embedded. Can be resumed."""
    from zicl.corpus.manifest import read_manifest
    from zicl.corpus.sources import find_sources

    if offline:
        go_offline()
    for file in context.args:
        raise UsageError(
            f"{file} was given without a domain: what is added is a domain of its own",
            hint=f"zicl corpus add {corpus} --domain {Path(file).name.partition('.')[0] or 'NAME'}={file}",
        )
    if not domain:
        raise UsageError("no domain was named", hint="for example --domain imdb=imdb.jsonl.gz")
    preflight(output=output)
    read_manifest(corpus)
    sources = find_sources([], by_domain(domain), kind=kind_of_file)
    limit, limits = parse_limits(max_paragraphs)
    if limit is not None or set(limits) - {source.domain for source in sources}:
        raise UsageError("--max-paragraphs is for the new domains", hint=f"--max-paragraphs {sources[0].domain}=2000")
    with progress_bars() as report:
        from zicl.retrieve.update import add_domains

        changed = add_domains(
            corpus,
            sources,
            output=output,
            text_column=text_column,
            domain_paragraphs=limits,
            offline=offline,
            report=report,
        )
    _print_corpus(changed, json_output)


def remove(
    corpus: CorpusArgument,
    domain: Annotated[list[str] | None, typer.Option("--domain", help="Its name, as often as needed.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Remove domains from every search at once; 'zicl corpus compact' then frees their space."""
    from zicl.corpus.update import remove_domains

    if not domain:
        raise UsageError("no domain was named", hint="for example --domain imdb")
    _print_corpus(remove_domains(corpus, list(dict.fromkeys(domain))), json_output)


def compact(
    corpus: CorpusArgument,
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Free the space of removed domains. Sentences are renumbered, as in a corpus built without them."""
    from zicl.corpus.manifest import read_manifest
    from zicl.corpus.store import removed_domains

    if offline:
        go_offline()
    names = removed_domains(read_manifest(corpus))
    with progress_bars() as report:
        from zicl.retrieve.update import compact as free

        changed = free(corpus, offline=offline, report=report)
    print_status(
        f"freed the space of {', '.join(names)}" if names else f"{corpus} has no removed domains: nothing to free"
    )
    _print_corpus(changed, json_output)


def _print_corpus(corpus: Corpus, json_output: bool) -> None:
    if json_output:
        print_json(about(corpus), indent=2)
    else:
        summary(corpus.manifest, str(corpus.path))


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command()
def build(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders, hf:DATASET[:[CONFIGURATION:]SPLIT], or - for standard input."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The corpus folder to write.")] = Path("corpus.zicl"),
    domain: Annotated[list[str] | None, typer.Option("--domain", help="NAME=PATH, as often as needed.")] = None,
    max_paragraphs: MaxParagraphsOption = None,
    seed: Annotated[int, typer.Option(help="Decides the sample.")] = 0,
    splitter: Annotated[str, typer.Option(help="sentencex, or punkt (the paper's).")] = "sentencex",
    text_column: Annotated[str, typer.Option(help="The column or key that holds the text.")] = "text",
    lines: Annotated[bool, typer.Option("--lines", help="Treat each line of a .txt file as a document.")] = False,
    kind_of_file: Annotated[
        str | None, typer.Option("--format", help="txt, jsonl, csv or parquet, where the name does not say it.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="The encoding of text files.")] = "utf-8-sig",
    encoder: Annotated[
        str, typer.Option(help="Catalog name, folder or id of a sentence-transformers model.")
    ] = "bge-small-en-v1.5",
    kind: Annotated[str, typer.Option("--index", help="auto, none (text only), or a kind of index build.")] = "auto",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a corpus that exists.")] = False,
    on: OnOption = None,
    threads: Annotated[int | None, typer.Option("--threads", help="CPU threads to use here.", min=1)] = None,
    offline: OfflineOption = False,
) -> None:
    """Build a corpus from raw text, and its index. A killed build can be resumed."""
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.shards import BuildOptions
    from zicl.corpus.sources import find_sources
    from zicl.corpus.splitter import SPLITTERS

    preflight(output=output, encoder=None if kind == "none" else encoder)
    if offline:
        go_offline()
    SPLITTERS.get(splitter)
    wanted = None
    if kind != "none":
        from zicl.retrieve.kinds import check_kind

        wanted = check_kind(kind)
    sources = find_sources(paths or [], by_domain(domain or []), kind=kind_of_file)
    limit, limits = parse_limits(max_paragraphs)
    if unknown := sorted(set(limits) - {source.domain for source in sources}):
        raise UsageError(
            f"--max-paragraphs {unknown[0]}={limits[unknown[0]]}: there is no such domain",
            hint=f"there are: {', '.join(dict.fromkeys(source.domain for source in sources))}",
        )
    options = BuildOptions(limit or _MOST_PARAGRAPHS, seed, splitter, text_column, lines, encoding, limits)
    corpus = None if wanted is None else _unfinished(output, sources, options)
    choice = parse_cluster(on)
    with progress_bars() as report, nullcontext() if choice is None else connected(choice) as found:
        # On a cluster too: the index is written here, and is the same at equal numbers of threads.
        use_threads(threads if found is None else found.threads)
        if corpus is None:
            split = None if found is None else _split_on(found, splitter, offline=offline)
            corpus = build_corpus(sources, output, options, overwrite=overwrite, split=split, report=report)
        if wanted is not None:
            from zicl.retrieve.builder import build_index
            from zicl.retrieve.encoder import load_encoder

            report("loading the encoder", 0, None, encoder)
            loaded = load_encoder(encoder, offline=offline)
            elsewhere = None if found is None else _embed_on(found, corpus, loaded, offline=offline)
            build_index(corpus, loaded, kind=wanted, elsewhere=elsewhere, report=report)
    summary(corpus.manifest, str(output))


def _split_on(found: Cluster, splitter: str, *, offline: bool) -> SplitMany:
    from zicl.apps.cluster.ray_data import split_on

    return split_on(found, splitter, offline=offline)


def _embed_on(found: Cluster, corpus: Corpus, encoder: Encoder, *, offline: bool) -> EmbedShards:
    from zicl.apps.cluster.ray_data import embed_on

    return embed_on(found, corpus, encoder, offline=offline)


def _unfinished(output: Path, sources: list[Source], options: BuildOptions) -> Corpus | None:
    """Return the corpus of these sources if its text is complete and its index is not, after an interruption."""
    from zicl._util.locks import remove_finished
    from zicl.corpus.builder import BUILD_KEY, build_key
    from zicl.corpus.manifest import MANIFEST
    from zicl.corpus.store import Corpus
    from zicl.retrieve.builder import FOLDER

    key = output / BUILD_KEY
    if not (output / MANIFEST).is_file() or (output / FOLDER).is_dir() or not key.is_file():
        return None
    if any(source.path == "-" for source in sources) or key.read_text().strip() != build_key(sources, options):
        return None
    corpus = Corpus.open(output)
    remove_finished(output, MANIFEST)
    print_status(f"{output} has its text; building its index")
    return corpus


# Files without a domain are passed on, so that the command can say how to name one.
app.command(context_settings={"allow_extra_args": True})(add)
app.command()(remove)
app.command()(compact)


@app.command()
def info(
    corpus: Annotated[Path, typer.Argument(help="A corpus folder.")],
    verify: Annotated[bool, typer.Option("--verify", help="Check the hashes of all files, however large.")] = False,
    json_output: JsonOption = False,
) -> None:
    """Print what a corpus holds, and with which encoder it is indexed."""
    from zicl.corpus.store import Corpus, check_files
    from zicl.retrieve.builder import FOLDER

    opened = Corpus.open(corpus, verify=verify or None)
    known = about(opened)
    index = known["index"]
    if index:
        check_files(corpus / FOLDER, index["files"], verify=verify or None)
    if json_output:
        print_json(known, indent=2)
        return
    summary(opened.manifest, str(corpus), print_line)
    for source in opened.manifest["sources"]:
        if source["domain"] in opened.domains:
            print_line(f"  from {source['name']} ({source['domain']})")
    if index:
        print_line(
            f"  index: {index['kind']}, {index['vectors']:,} vectors of {index['encoder']['name']}"
            f" ({index['encoder']['identity'][:12]})"
            + "".join(f", {n}={v}" for n, v in index.get("search", {}).items())
        )
    else:
        print_line(f"  no index yet: zicl index build {corpus}")


@app.command()
def show(
    corpus: Annotated[Path, typer.Argument(help="A corpus folder.")],
    sentence: Annotated[int, typer.Argument(metavar="ID", help="The number of a sentence.")],
    json_output: JsonOption = False,
) -> None:
    """Print a sentence in its paragraph."""
    from dataclasses import asdict

    from zicl.corpus.store import Corpus

    opened = Corpus.open(corpus)
    own = opened.sentence(sentence)
    paragraph = opened.paragraph(sentence)
    if json_output:
        print_json({"sentence": asdict(own), "paragraph": [asdict(s) for s in paragraph]})
        return
    print_status(f"document {own.document} of {own.source}, domain {own.domain}")
    for other in paragraph:
        print_line(f"{'▶' if other.row == sentence else ' '} {other.row}  {other.text}")
