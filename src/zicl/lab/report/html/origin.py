"""Where the numbers come from: configuration, models, corpus, versions and time, as the manifests have them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zicl._util.progress import duration
from zicl.lab.evaluate.store import Results
from zicl.lab.evaluate.timing import spent
from zicl.lab.report.html.tables import facts_html
from zicl.lab.report.html.text import escape


def origin_html(title: str, folder: Path) -> str:
    """A results folder's part of the page."""
    manifest = Results.open(folder).manifest
    methods = {name.split("/")[1]: cell.get("method") for name, cell in manifest["cells"].items()}
    return "\n".join(
        [
            f'<section class="origin"><h3>{escape(title)}</h3>',
            facts_html(facts(manifest, folder)),
            _details("Versions", facts_html(_versions(manifest))),
            _details("Tasks", "".join(_task(name, entry) for name, entry in manifest["tasks"].items())),
            _details("Experiment", _code(manifest.get("experiment") or {})),
            _details("Methods", _code(methods)),
            "</section>",
        ]
    )


def facts(manifest: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Model, corpus and what was run, in words."""
    known = manifest["fingerprint"]
    lm, corpus = known.get("lm") or {}, known.get("corpus") or {}
    told = {
        "Language model": lm.get("name"),
        "Its weights": _short(lm.get("identity")),
        "Numbers and device": ", ".join(filter(None, [known.get("dtype"), known.get("device")])),
        "Corpus": f"{corpus['sentences']:,} sentences, {_short(corpus['identity'])}" if corpus else None,
        "Domains": ", ".join(corpus.get("domains") or []),
        "Encoder": corpus.get("encoder"),
        "Cells": f"{len(manifest['cells']):,}",
        "Complete": "yes" if manifest.get("complete") else "no: some predictions are missing",
        "Time": time_taken([folder]),
    }
    return {name: str(value) for name, value in told.items() if value}


def time_taken(folders: Iterable[Path]) -> str:
    """How long the rows took to compute, if the folders say so."""
    told = spent(folders)
    return f"{duration(told.seconds)} for {told.rows:,} predictions" if told.rows else "not recorded"


def _versions(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {"zicl": str(manifest.get("zicl", "unknown")), **(manifest["fingerprint"].get("versions") or {})}


def _task(name: str, entry: Mapping[str, Any]) -> str:
    told = {
        "Labels": ", ".join(entry["labels"]),
        "Examples": f"{entry['examples']:,}",
        "Origin": entry.get("origin"),
        "Note": entry.get("note"),
    }
    return f"<h4>{escape(name)}</h4>{facts_html({key: str(value) for key, value in told.items() if value})}"


def _details(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _code(value: Any) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return f'<pre tabindex="0">{escape(text)}</pre>'


def _short(identity: Any) -> str:
    return str(identity)[:12] if identity else ""
