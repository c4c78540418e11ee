"""One target per reader: a function that makes what it needs once and returns what is called with every input.

To add a target, write such a function, put it into ``TARGETS`` and its seeds into ``make_seeds.py``.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import DOCUMENTS, BagEncoder

Run = Callable[[bytes], object]
# Parts of a folder in one input.
SEPARATOR = b"\n--8<--\n"


def scratch() -> Path:
    """A folder for this process; in memory where there is such a place."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="zicl-fuzz-", dir=memory if memory.is_dir() else None))


def table(name: str) -> Run:
    """Rows to classify, from a file of this name."""
    from zicl.corpus.reader import SourceReader
    from zicl.corpus.sources import find_sources
    from zicl.exceptions import TextError
    from zicl.inputs.tables import read_rows

    path = scratch() / name

    def run(data: bytes) -> None:
        path.write_bytes(data)
        try:
            for row in read_rows(str(path), distinct=False):
                repr(row)
        except TextError:
            pass
        for _ in SourceReader(find_sources([path])[0]).blocks():
            pass

    return run


def labels() -> Run:
    """A labels.toml; what was read is written and read again."""
    from zicl.prompt.labels import read_labels

    path = scratch() / "labels.toml"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        found = read_labels(path)
        path.write_text(found.to_toml(), encoding="utf-8")
        assert read_labels(path) == found

    return run


def settings() -> Run:
    """The TOML of experiments, studies and tasks."""
    from zicl.exceptions import ZICLError
    from zicl.lab.evaluate.experiment import read_experiment
    from zicl.lab.evaluate.tasks import read_tasks
    from zicl.lab.study.settings import read_settings

    path = scratch() / "settings.toml"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        for read in (lambda: read_experiment(path, {}), lambda: read_tasks(path), lambda: read_settings(path, {})):
            with contextlib.suppress(ZICLError):
                read()

    return run


def _corpus() -> Path:
    from zicl.corpus.builder import build_corpus
    from zicl.corpus.sources import find_sources
    from zicl.retrieve.builder import build_index

    folder = scratch()
    paths = {}
    for number, text in enumerate(DOCUMENTS[:4]):
        paths[f"d{number % 2}"] = [folder / f"{number}.txt"]
        (folder / f"{number}.txt").write_text(f"{text}\n\n{DOCUMENTS[0]}")
    corpus = build_corpus(find_sources([], paths), folder / "c.zicl")
    build_index(corpus, BagEncoder(), kind="flat")
    return corpus.path


def _use(folder: Path) -> None:
    """Read a corpus as the commands do."""
    from zicl.cli.corpus import about, summary
    from zicl.retrieve.index import Index

    index = Index.open(folder, encoder=BagEncoder(), verify=True)
    summary(index.corpus.manifest, "c", lambda line: None)
    json.dumps(about(index.corpus))
    for hit, _ in zip(index.nearest("cold soup"), range(3), strict=False):
        index.corpus.paragraph(hit.row)
    list(index.corpus.used_texts())
    index.corpus.documents_like(DOCUMENTS[0])


def corpus_manifest() -> Run:
    """The manifest of a corpus."""
    folder = _corpus()

    def run(data: bytes) -> None:
        (folder / "manifest.json").write_bytes(data)
        _use(folder)

    return run


def index_manifest() -> Run:
    """The manifest of an index."""
    folder = _corpus()

    def run(data: bytes) -> None:
        (folder / "index" / "manifest.json").write_bytes(data)
        _use(folder)

    return run


def sentences() -> Run:
    """The Arrow file of a corpus, whose manifest fits it."""
    from zicl.corpus.store import Corpus, describe_files

    folder = _corpus()
    manifest = json.loads((folder / "manifest.json").read_text())

    def run(data: bytes) -> None:
        # A new file each time: the one of the last run may still be mapped.
        (folder / "sentences.arrow").unlink()
        (folder / "sentences.arrow").write_bytes(data)
        manifest["files"] = describe_files(folder, ("sentences.arrow", "texts.arrow"))
        (folder / "manifest.json").write_text(json.dumps(manifest))
        corpus = Corpus.open(folder, verify=True)
        list(corpus.used_texts())
        corpus.paragraph(0)

    return run


def classifier() -> Run:
    """The classifier.json of a saved classifier that learned from a pile."""
    import zicl

    folder = scratch() / "x.zicl-clf"
    texts = [sentence for text in DOCUMENTS for sentence in text.split(". ")]
    zicl.ZICLClassifier(labels=["film", "food", "train"], encoder=BagEncoder()).fit(texts).save(folder)

    def run(data: bytes) -> None:
        (folder / "classifier.json").write_bytes(data)
        loaded: Any = zicl.load(folder, encoder=BagEncoder(), offline=True)
        loaded.classify(["The soup was cold.", "A bold little film."])
        loaded.fingerprint()

    return run


def gguf() -> Run:
    """The header of a GGUF file."""
    from zicl.lm.gguf import _adds_bos

    path = scratch() / "a.gguf"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        _adds_bos(path)

    return run


def onnx() -> Run:
    """The three files of an ONNX encoder."""
    from zicl.retrieve.onnx import MODEL, SETTINGS, TOKENIZER, OnnxEncoder

    folder = scratch()

    def run(data: bytes) -> None:
        for name, part in zip((SETTINGS, TOKENIZER, MODEL), [*data.split(SEPARATOR, 2), b"", b""], strict=False):
            (folder / name).write_bytes(part)
        OnnxEncoder(folder, "fuzzed").encode(["One lamp.", ""])

    return run


def remote_model(spec: str) -> Any:
    """Open a model as the commands do, one request at a time, with the tokenizer of the tests."""
    from tests.lm.remote.server import tiny
    from zicl.lm.remote.open import open_remote
    from zicl.lm.remote.settings import RemoteSettings
    from zicl.lm.tokenizer import PlainTokenizer

    chosen = RemoteSettings(tokenizer="tiny", recall=False, requests=1)
    return open_remote(
        spec, chosen, load_tokenizer=lambda name: PlainTokenizer(tiny()[1], name), sleep=lambda seconds: None
    )


def remote_score(lm: Any) -> None:
    """Score a prompt."""
    from zicl.prompt.builder import PromptBuilder
    from zicl.prompt.template import get_template

    builder = PromptBuilder(lm.tokenizer, get_template("review"), "direct", context=lm.context, bos=lm.adds_bos)
    lm.score([builder.build("A lamp.", [], ["great", "bad"])])


def remote() -> Run:
    """The answers of a server, one after the other, the last one again and again."""
    import os

    from zicl.lm.remote.client import Client

    os.environ["ZICL_HOME"] = str(scratch())
    answers: list[bytes] = []

    def answered(*_: object) -> tuple[int, dict[str, str], bytes]:
        raw = answers.pop(0) if len(answers) > 1 else answers[0]
        status = int(raw[:3]) if raw[:3].isdigit() and 100 <= int(raw[:3]) < 600 else 200
        return status, {}, raw[3:] if status != 200 else raw

    Client._exchange = answered  # type: ignore[method-assign, assignment]

    def run(data: bytes) -> None:
        answers[:] = data.split(SEPARATOR)[:64]
        lm = remote_model("http://127.0.0.1:9/v1#tiny")
        try:
            remote_score(lm)
        finally:
            lm.close()

    return run


TARGETS: dict[str, Callable[[], Run]] = {
    "csv": lambda: table("a.csv"),
    "jsonl": lambda: table("a.jsonl"),
    "txt": lambda: table("a.txt"),
    "parquet": lambda: table("a.parquet"),
    "arrow": lambda: table("a.arrow"),
    "xlsx": lambda: table("a.xlsx"),
    "gz": lambda: table("a.jsonl.gz"),
    "zst": lambda: table("a.jsonl.zst"),
    "labels": labels,
    "settings": settings,
    "corpus": corpus_manifest,
    "index": index_manifest,
    "sentences": sentences,
    "classifier": classifier,
    "gguf": gguf,
    "onnx": onnx,
    "remote": remote,
}
