"""Removing a domain: a note in the manifest leaves it out of everything at once; ``compact`` frees its space."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from zicl._util.files import locked, write_json
from zicl._util.registry import did_you_mean
from zicl.corpus.store import MANIFEST, Corpus, read_manifest, totals
from zicl.exceptions import EmptyCorpusError, UsageError


def remove_domains(path: str | Path, names: Sequence[str]) -> Corpus:
    """Leave domains out of every search, draw and count. Their text and vectors stay on disk until ``compact``."""
    folder = Path(path).resolve()
    work = folder.with_name(folder.name + ".partial")
    existed = work.exists()
    read_manifest(folder)
    with locked(work, f"{folder} is being changed by another process"):
        try:
            write_json(folder / MANIFEST, _without(_checked(folder, names), names))
        finally:
            # What a killed change left there is kept for it.
            if not existed:
                shutil.rmtree(work, ignore_errors=True)
    return Corpus.open(folder, verify=False)


def _checked(folder: Path, names: Sequence[str]) -> Corpus:
    corpus = Corpus.open(folder)
    for name in names:
        if name in corpus.part.without:
            raise UsageError(
                f"the domain {name!r} is removed already", hint=f"free its space: zicl corpus compact {folder}"
            )
        if name not in corpus.domains:
            raise did_you_mean("domain", name, corpus.domains)
    return corpus


def _without(corpus: Corpus, names: Sequence[str]) -> dict[str, Any]:
    """The manifest with these domains marked, and its counts without them."""
    domains = [
        {**domain, "removed": True} if domain["name"] in names else domain for domain in corpus.manifest["domains"]
    ]
    manifest = {**corpus.manifest, "domains": domains, "document_ids": corpus.document_ids}
    if totals(domains)["sentences"] == 0:
        raise EmptyCorpusError(
            f"without {', '.join(names)} no sentence of {corpus.path} would be left",
            hint="delete the folder if it is not needed any more",
        )
    # A sentence whose twin is removed with its domain is now the first with its text.
    rest = Corpus(corpus.path, manifest)
    domains = [d if d.get("removed") else {**d, "indexed": len(rest.domain_rows(d["name"]))} for d in domains]
    bounds = [*(source["first_document"] for source in corpus.manifest["sources"]), corpus.document_ids]
    documents = sum(
        end - start
        for (start, end), source in zip(pairwise(bounds), corpus.manifest["sources"], strict=True)
        if source["domain"] in rest.domains
    )
    return {**manifest, "domains": domains, "documents": documents, **totals(domains)}
