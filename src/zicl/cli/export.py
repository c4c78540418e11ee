"""zicl export: a saved classifier as ONNX files that need neither zicl nor torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zicl.cli.console import print_json, print_status
from zicl.cli.options import JsonOption, OfflineOption
from zicl.cli.preflight import preflight


def export(
    classifier: Annotated[Path, typer.Argument(help="A saved classifier: a folder NAME.zicl-clf.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    corpus: Annotated[
        Path | None, typer.Option("--corpus", "-c", help="Where its corpus is now, if elsewhere.")
    ] = None,
    encoder: Annotated[str | None, typer.Option("--encoder", help="Where its encoder is now, if elsewhere.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an exported classifier.")] = False,
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Export a classifier as ONNX files with a short script: no torch, no zicl, the same probabilities."""
    new_folder = None if overwrite else output
    preflight(output=output, saved=classifier, new_folder=new_folder, corpus=corpus, encoder=encoder)
    from zicl.apps.distill.classifier import DistilledClassifier
    from zicl.apps.export.run import check_exportable
    from zicl.apps.export.run import export as write
    from zicl.classifier import ZICLClassifier, load

    check_exportable(classifier)
    loaded = load(classifier, index=corpus, encoder=encoder, offline=offline)
    assert isinstance(loaded, ZICLClassifier | DistilledClassifier)
    folder = write(loaded, output, overwrite=overwrite)
    size = sum(path.stat().st_size for path in folder.iterdir())
    if json_output:
        print_json({"output": str(folder), "bytes": size})
    print_status(f"{folder}, {size / 1e6:.0f} MB: its README.md says how to use it")
