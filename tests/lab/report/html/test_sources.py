"""Sources of a page: results and studies anywhere below a folder, and texts only of the data of the rows."""

import shutil

import pytest

from tests.lab.report.html.conftest import write_study
from zicl.exceptions import ConfigError, StorageError, UsageError
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.report.html.sources import find_folders, read_texts


def test_results_and_studies_are_found_below_a_folder_once(evaluated):
    found = find_folders([evaluated.results, evaluated.study.parent])
    assert found.results == (evaluated.results,)
    assert [study.summary.name for study in found.studies] == ["copying"]
    assert found.studies[0].results == (evaluated.study / "near",)
    above = find_folders([evaluated.results.parent, evaluated.results, evaluated.study])
    assert above.results == found.results
    assert len(above.studies) == 1


def test_studies_with_the_same_name_get_their_folders(tmp_path):
    for model in ("small", "large"):
        write_study(tmp_path / model / "studies" / "copying")
    write_study(tmp_path / "small" / "studies" / "order", name="order")
    found = find_folders([tmp_path]).studies
    assert [study.name for study in found] == ["copying (large/studies)", "copying (small/studies)", "order"]
    assert len({study.id for study in found}) == 3


def test_a_corpus_is_no_results_folder(evaluated):
    with pytest.raises(StorageError, match="no results and no study"):
        find_folders([evaluated.index.corpus.path])


def test_a_study_may_be_a_results_folder_or_have_none(evaluated, tmp_path):
    alone = write_study(tmp_path / "alone")
    assert find_folders([alone]).studies[0].results == ()
    shutil.copytree(evaluated.results, tmp_path / "both")
    both = write_study(tmp_path / "both")
    assert find_folders([both]).studies[0].results == (both,)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(StorageError, match="there is no"):
        find_folders([tmp_path / "nothing"])


@pytest.mark.parametrize(
    "changes",
    [
        {"title": None},
        {"findings": "one"},
        {"figures": [{"file": "../outside.svg", "title": "x"}]},
        {"figures": [{"file": "gone.svg", "title": "x"}]},
        {"figures": [{"file": "study.json", "title": "x"}]},
    ],
)
def test_a_damaged_study_is_named(tmp_path, changes):
    (tmp_path / "outside.svg").write_text("<svg/>")
    study = write_study(tmp_path / "study", **changes)
    with pytest.raises(StorageError) as error:
        find_folders([study])
    assert not isinstance(error.value, UsageError)
    assert "study" in str(error.value)


def test_unknown_keys_are_ignored(tmp_path):
    assert find_folders([write_study(tmp_path / "s", seconds=3)]).studies[0].summary.title == "How much is copied?"


def test_other_data_and_another_corpus_are_refused(evaluated, tmp_path):
    manifest = ResultsFolder.open(evaluated.results).manifest
    experiment = evaluated.context.experiment.model_copy(update={"corpus": None})
    with pytest.raises(ConfigError, match="other test examples"):
        read_texts(experiment, [{**manifest, "tasks": {"Days": {**manifest["tasks"]["Days"], "hash": "0"}}}])
    with pytest.raises(ConfigError, match="other training examples"):
        read_texts(experiment, [{**manifest, "tasks": {"Days": {**manifest["tasks"]["Days"], "train_hash": "0"}}}])
    corpus = type(experiment)(tasks=["SST2"], methods=["majority"], corpus=str(evaluated.index.corpus.path)).corpus
    with pytest.raises(ConfigError, match="another corpus"):
        read_texts(experiment.model_copy(update={"corpus": corpus}), [{**manifest, "fingerprint": {"corpus": None}}])
