"""zicl labels: suggest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from zicl._util.process import go_offline
from zicl.cli.console import print_json, print_status, progress_bars
from zicl.cli.options import JsonOption, OfflineOption, SynonymsOption
from zicl.cli.parsing import parse_labels
from zicl.cli.preflight import preflight

_DRAFT = "# A draft: edit words, synonyms and descriptions to fit your texts.\n"

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Draft a labels.toml."""


@app.command()
def suggest(
    labels: Annotated[str, typer.Argument(help="Label words, comma-separated, or a labels.toml.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The labels.toml to write; else it is printed.")
    ] = None,
    synonyms: SynonymsOption = None,
    lm: Annotated[str, typer.Option(help="The language model that ranks them.")] = "smollm2-135m",
    encoder: Annotated[str, typer.Option(help="The encoder that ranks them.")] = "bge-small-en-v1.5",
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Find synonyms for labels and draft a labels.toml, to be read and edited."""
    preflight(output=output, lm=lm, encoder=encoder)
    if offline:
        go_offline()
    chosen = parse_labels(labels, synonyms)
    if output is not None and output.exists():
        from zicl._util.files import exists_error

        raise exists_error(output)
    with progress_bars() as report:
        report("loading the models", 0, None, f"{encoder}, {lm}")
        from zicl.lm.load import load_lm
        from zicl.prompt.synonyms import paper_table
        from zicl.prompt.synonyms import suggest_synonyms as find
        from zicl.retrieve.encoder import load_encoder

        known = paper_table(chosen.words)
        missing = [label for label in chosen if not label.synonyms]
        found = (
            {}
            if known or not missing
            else find(chosen, load_encoder(encoder, offline=offline), load_lm(lm, offline=offline), offline=offline)
        )
    words = {name: [options[0].word] for name, options in found.items() if options}
    if known:
        words = {label.name: list(known[label.words]) for label in missing}
    drafted = chosen.with_synonyms(words)
    if output is not None:
        from zicl._util.files import write_text

        write_text(output, _DRAFT + drafted.to_toml())
        print_status(f"written to {output}: a draft, to be read and edited")
    if json_output:
        alternatives = {name: [asdict(option) for option in options] for name, options in found.items()}
        print_json({"labels": [asdict(label) for label in drafted], "alternatives": alternatives})
        return
    for label in drafted:
        others = [option.word for option in found.get(label.name, [])[1:]]
        more = f" (or {', '.join(others)})" if others else ""
        print_status(f"{label.name}: {', '.join(label.synonyms) or 'none good enough, name one by hand'}{more}")
    if output is None:
        typer.echo(_DRAFT + drafted.to_toml())
