"""zicl index: build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zicl.cli._options import OfflineOption, go_offline
from zicl.cli._progress import bars, say

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Build the vectors of a corpus again."""


@app.command()
def build(
    corpus: Annotated[Path, typer.Argument(help="A corpus folder.")],
    encoder: Annotated[
        str, typer.Option(help="Catalog name, folder or id of a sentence-transformers model.")
    ] = "all-minilm-l6-v2",
    kind: Annotated[str, typer.Option(help="auto, flat, hnsw or ivf.")] = "auto",
    offline: OfflineOption = False,
) -> None:
    """Embed a corpus and index its vectors; an index that is there is replaced when the new one is whole."""
    from zicl.corpus.store import Corpus
    from zicl.retrieve import vectors

    if offline:
        go_offline()
    opened = Corpus.open(corpus)
    wanted = vectors.named(kind)
    chosen = vectors.choose(wanted, opened.manifest["indexed"])
    with bars() as report:
        from zicl.retrieve.build import build_index
        from zicl.retrieve.encoder import load_encoder

        report("loading the encoder", 0, None, encoder)
        build_index(opened, load_encoder(encoder, offline=offline), kind=wanted, report=report)
    say(f"{corpus}: {opened.manifest['indexed']:,} vectors of {encoder}, {chosen}")
