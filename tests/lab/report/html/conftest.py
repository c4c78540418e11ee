"""A tiny evaluation and a study, with a sentence that attempts an HTML injection."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import DOCUMENTS, make_index, tiny_lm
from tests.lab.evaluate.conftest import make_experiment, write_task
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.run import evaluate
from zicl.lab.report.build import make_report
from zicl.lab.report.html.page import BrowserOptions, make_page
from zicl.lab.report.html.sources import find_folders, read_texts
from zicl.lab.report.statistics import Interval
from zicl.lab.study.figures import Panel, Point, Series, StudyFigure, draw_figure
from zicl.lab.study.method_grid import style_of
from zicl.retrieve.index import Index

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"> was the worst soup & <b>bread</b>."
METHODS = ["majority", "no-demos", "naive", "z-icl", "icl-gold", "cosine-words"]


@dataclass(frozen=True)
class Evaluated:
    """The folders of an evaluation and a study, with the context they were computed in."""

    context: ExperimentContext
    index: Index
    results: Path
    study: Path

    def texts(self):
        experiment = self.context.experiment.model_copy(update={"corpus": None})
        read = read_texts(experiment, [json.loads((self.results / "manifest.json").read_text())])
        return type(read)(read.tests, read.training, self.index)

    def page(self, *paths, texts=None, **browsing):
        found = find_folders(paths or (self.results, self.study))
        report = make_report(found.results) if found.results else None
        return make_page(found, report, self.texts() if texts is None else texts, BrowserOptions(**browsing))


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory) -> Evaluated:
    folder = tmp_path_factory.mktemp("page")
    raw = folder / "raw.jsonl"
    documents = [*DOCUMENTS, f"The soup was odd. {HOSTILE} Nobody finished the soup."]
    raw.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), encoding="utf-8")
    tasks = write_task(folder)
    with (folder / "test.jsonl").open("a") as stream:
        stream.write(json.dumps({"id": "hostile", "text": HOSTILE, "label": "terrible"}) + "\n")
    experiment = make_experiment(tasks, methods=METHODS, seeds=[13], inferences=["channel"], notes={"Days": HOSTILE})
    index = make_index(folder / "raw.zicl", raw)
    context = ExperimentContext(experiment, lm=tiny_lm(), index=index)
    evaluate(context, folder / "results")
    study = folder / "studies" / "copying"
    shutil.copytree(folder / "results", study / "near")
    write_study(study)
    return Evaluated(context, index, folder / "results", study)


def write_study(folder: Path, **changes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    series = Series("Nearest", style_of("naive"), (Point("near", Interval(3.1, -1.0, 7.2, 0.1)),))
    draw_figure(StudyFigure("gap", "The gap", "", "points", (Panel("channel", (series,)),)), folder)
    summary = {
        "name": "copying",
        "title": "How much is copied?",
        "question": "Does a near demonstration give away its label?",
        "paper": "Gold and random labels differ more where demonstrations are near.",
        "findings": ["Near: +3.1 points [-1.0, +7.2].", f"Far: {HOSTILE}"],
        "figures": [{"file": "gap.svg", "title": "The gap", "alt": "A bar for each distance."}],
    }
    (folder / "study.json").write_text(json.dumps({**summary, **changes}), encoding="utf-8")
    return folder
