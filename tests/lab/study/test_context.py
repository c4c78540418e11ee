"""The context of studies: stored and new scores of heads, shares of the corpus, checks before anything is loaded."""

from __future__ import annotations

import pytest

from tests.lab.study.conftest import make_settings
from zicl.exceptions import ConfigError
from zicl.lab.study.context import LoadedSetup, StudyContext
from zicl.lab.study.registry import STUDIES
from zicl.lab.study.run import run_study
from zicl.lab.study.settings import StudySettings


def test_tasks_with_options_per_example_are_refused(context, tmp_path):
    (tmp_path / "choice.jsonl").write_text('{"id": "1", "text": "a", "label": "1", "choices": ["b", "c"]}\n' * 1)
    (tmp_path / "choice.toml").write_text(
        '[T]\ntest = "choice.jsonl"\nlabels = 2\ntemplate = "choice"\noptions_column = "choices"\n'
    )
    context.settings = make_settings(tmp_path / "choice.toml")
    with pytest.raises(ConfigError, match="each example of T has its options"):
        run_study(STUDIES.get("labels"), context)


def test_heads_are_found_once_and_only_read_for_the_same_options(context):
    setup = LoadedSetup(context, STUDIES.get("heads"))
    first = setup.heads(None, 3, "training")
    assert (first.task, first.prompts, first.found_on) == ("Days", 3, "training")
    assert setup.heads("Days", 3, "training") == first
    for task, examples, found_on in (("Nights", 3, "training"), (None, 2, "training"), (None, 3, "corpus")):
        requested = rf"not on {examples} of {task or 'Days'} \(found_on: {found_on}\)"
        with pytest.raises(ConfigError, match=rf"found on 3 examples of Days \(found_on: training\), {requested}"):
            setup.heads(task, examples, found_on)
    with pytest.raises(ConfigError, match="not on 99 of Days"):
        setup.heads(None, 99, "training")


def test_heads_can_be_found_on_corpus_sentences(context):
    """Other prompts give other scores; the file says which were used."""
    found = {}
    for where in ("training", "corpus"):
        found[where] = LoadedSetup(context, STUDIES.get("heads")).heads(None, 3, where)
        (context.folder / "heads" / "heads.json").unlink()
    assert {name: each.found_on for name, each in found.items()} == {"training": "training", "corpus": "corpus"}
    assert (found["training"].values != found["corpus"].values).any()


def test_a_task_with_fewer_examples_than_requested_gives_all(context):
    setup = LoadedSetup(context, STUDIES.get("heads"))
    first = setup.heads(None, 999, "training")
    assert first.prompts < 999
    assert setup.heads(None, 999, "training") == first


def test_shares_with_too_few_neighbours_or_equal_ones_are_skipped(context, two_domains):
    def shares(*values, k=6):
        table = {**context.settings.table, "k": k}
        context.settings = StudySettings(table, {"corpus-size": {"options": {"shares": values}}})
        (part,) = context.parts(STUDIES.get("corpus-size"))
        return set(part.methods) - {"no-demos"}

    assert shares(1, 0.8, 0.01) == {"z-icl", "z-icl-share-0_8"}
    assert shares(1, 0.8, 0.01, k=1) == {"z-icl", "z-icl-share-0_8", "z-icl-share-0_01"}
    # Of five paragraphs per domain, 0.8 and 0.79 are the same four.
    assert shares(1, 0.79, 0.8) == {"z-icl", "z-icl-share-0_8"}
    with_neighbour = [row for row in range(len(two_domains.corpus)) if two_domains.neighbour(row) is not None]
    assert two_domains.corpus.accompanied == len(with_neighbour) > 0


def test_a_missing_corpus_for_finding_heads_is_an_error_before_anything_is_loaded(settings, tmp_path):
    table = {name: value for name, value in settings.table.items() if name != "corpus"}
    study = STUDIES.get("heads")
    StudyContext(StudySettings(table, settings.studies), tmp_path / "studies").check([study], finding=True)
    options = {"heads": {"options": {"found_on": "corpus"}}}
    with pytest.raises(ConfigError, match="corpus"):
        StudyContext(StudySettings(table, options), tmp_path / "studies").check([study], finding=True)
