"""zicl index: build, tune."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zicl._util.process import go_offline
from zicl.cli.console import people_console, print_json, print_line, print_status, progress_bars
from zicl.cli.options import JsonOption, OfflineOption
from zicl.cli.preflight import preflight

if TYPE_CHECKING:
    from zicl.retrieve.tune import SearchMeasurement, Tuning

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
CorpusArgument = Annotated[Path, typer.Argument(help="A corpus folder.")]


@app.callback()
def root() -> None:
    """Build the vectors of a corpus again, or measure how they are searched best."""


@app.command()
def build(
    corpus: CorpusArgument,
    encoder: Annotated[
        str, typer.Option(help="Catalog name, folder or id of a sentence-transformers model.")
    ] = "bge-small-en-v1.5",
    kind: Annotated[str, typer.Option(help="auto, flat, ivf-sq8 or ivf-pq.")] = "auto",
    keep_vectors: Annotated[
        bool, typer.Option("--keep-vectors", help="Reuse the vectors and the encoder of the existing index.")
    ] = False,
    offline: OfflineOption = False,
) -> None:
    """Embed a corpus and index its vectors; an existing index is replaced when the new one is complete.

    auto: flat (exact) up to 1 million vectors, ivf-sq8 up to 4 million, ivf-pq beyond, whatever the machine. How much
    an index of more than half a million finds depends on its sentences: measure it with zicl index tune.
    """
    from zicl.corpus.store import Corpus
    from zicl.retrieve import kinds as vectors

    preflight(encoder=None if keep_vectors else encoder)
    if offline:
        go_offline()
    opened = Corpus.open(corpus)
    wanted = vectors.check_kind(kind)
    chosen = vectors.auto_kind(wanted, opened.manifest["indexed"])
    if keep_vectors:
        from zicl.retrieve.update import change_kind

        with progress_bars() as report:
            encoder = change_kind(corpus, wanted, offline=offline, report=report).manifest["encoder"]["name"]
        print_status(f"{corpus}: {opened.manifest['indexed']:,} vectors of {encoder}, {chosen}")
        return
    with progress_bars() as report:
        from zicl.retrieve.builder import build_index
        from zicl.retrieve.encoder import load_encoder

        report("loading the encoder", 0, None, encoder)
        build_index(opened, load_encoder(encoder, offline=offline), kind=wanted, report=report)
    print_status(f"{corpus}: {opened.manifest['indexed']:,} vectors of {encoder}, {chosen}")


@app.command()
def tune(
    corpus: CorpusArgument,
    target: Annotated[float, typer.Option(help="The recall at 16 to reach.")] = 0.95,
    kind: Annotated[
        list[str] | None, typer.Option(help="Also measure this kind of index, built for the purpose; may be repeated.")
    ] = None,
    queries: Annotated[int, typer.Option(help="Number of query sentences, drawn from the corpus.")] = 200,
    seed: Annotated[int, typer.Option(help="Draws the sentences.")] = 0,
    json_output: JsonOption = False,
) -> None:
    """Measure recall at 16 against exact search, time and memory; keep the fastest setting that reaches the target.

    The queries are sentences of the corpus, excluded from their own results. Nothing else is changed.
    """
    from zicl.retrieve.tune import tune as measure

    with progress_bars() as report:
        found = measure(corpus, target=target, kinds=kind or (), queries=queries, seed=seed, report=report)
    if json_output:
        print_json(_as_json(found), indent=2)
    else:
        _show(corpus, found)
    raise typer.Exit(0 if found.pick else 1)


def _as_json(found: Tuning) -> dict[str, Any]:
    about = {name: getattr(found, name) for name in ("kind", "vectors", "queries", "target")}
    rows = [_row(each) for each in found.measured]
    return {**about, "measured": rows, "pick": _row(found.pick) if found.pick else None}


def _row(measured: SearchMeasurement) -> dict[str, Any]:
    return {
        "kind": measured.kind,
        "search": measured.params.given(),
        "recall_at_16": round(measured.recall, 4),
        "milliseconds": round(measured.milliseconds, 3),
        "anonymous_bytes": measured.memory.anonymous,
        "mapped_bytes": measured.memory.mapped,
    }


def _show(corpus: Path, found: Tuning) -> None:
    from rich.table import Table

    from zicl.retrieve.kinds import COMPRESSED

    table = Table("", "kind", "search", "recall at 16", "ms", "MB own", "MB mapped")
    for each in found.measured:
        sizes = (each.memory.anonymous, each.memory.mapped)
        memory = ("?" if size is None else f"{size / 1e6:,.0f}" for size in sizes)
        mark = "✓" if each == found.pick else ""
        table.add_row(mark, each.kind, str(each.params), f"{each.recall:.3f}", f"{each.milliseconds:.2f}", *memory)
    people_console().print(table)
    print_line(f"{found.queries} of {found.vectors:,} vectors as queries, one at a time; a process for each kind")
    if found.pick is None:
        print_status(
            f"nothing reaches a recall of {found.target:g}: ask for less, or build another kind (zicl index build)"
        )
    else:
        print_line(f"kept: {found.pick.kind} {str(found.pick.params) or 'as it is'}")
    if found.better is not None:
        # Compressed kinds keep vectors in half precision, which the others do not take over.
        kept = "" if found.kind in COMPRESSED and found.better.kind not in COMPRESSED else " --keep-vectors"
        build = f"zicl index build {corpus} --kind {found.better.kind}{kept}"
        print_status(f"faster: {found.better.kind} ({build}, then tune it)")
