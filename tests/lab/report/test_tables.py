"""The tables: their shape, marks and notes."""

import pytest

from tests.lab.report.folder import CHANCES, COVERED, make_rows, row, write_folder
from zicl.exceptions import ConfigError
from zicl.lab.report.build import make_report
from zicl.lab.report.cells import NO_INFERENCE


def test_the_main_table_has_the_papers_shape(folder):
    table = make_report([folder]).main
    assert [c.name + c.marks for c in table.columns] == ["CR", "SST2", "AGNews§"]
    assert [group for group, _ in table.groups] == [
        "Covered by the corpus", "Not covered by the corpus", "Coverage unknown"
    ]  # fmt: skip
    assert [section.title for section in table.sections] == [
        "Majority and controls", "Channel tiny, the task's template", "Direct tiny, no template"
    ]  # fmt: skip
    channel = table.sections[1]
    assert [r.title for r in channel.rows] == ["No-demos", "Z-icl", "Icl-gold (oracle)"]
    # The oracle is better, but not marked.
    assert [[e.best for e in r.entries] for r in channel.rows] == [[False] * 3, [True] * 3, [False] * 3]
    assert [r.method for r in table.sections[0].rows] == ["majority", "cosine-words", "logistic"]


def test_a_note_gives_sizes_and_warns_if_they_differ(tmp_path, folder):
    assert "A number rests on 60 examples and 2 seeds." in make_report([folder]).main.notes
    rows = make_rows({"no-demos": 0.5}, examples=40) + make_rows({"z-icl": 0.5}, examples=30, seeds=(13,))
    (note,) = [note for note in make_report([write_folder(tmp_path / "r", rows)]).main.notes if "rests on" in note]
    assert note.startswith("A number rests on 30 to 40 examples and 1 seed: compare such numbers with care")


def test_a_note_names_truncated_prompts(tmp_path):
    rows = []
    for method, kept in (("z-icl", 4), ("icl-gold", 1)):
        found = {"demos": list("abcd"), "demo_words": ["x"] * 4, "demo_labels": ["bad"] * 4, "kept": kept}
        for each in make_rows({method: 0.5}, examples=4, tasks=("CR",)):
            rows.append({**each, **found, "kept": kept + (kept == 1 and each["seed"] == 13)})
    (note,) = [n for n in make_report([write_folder(tmp_path / "r", rows)]).main.notes if "limit on tokens" in n]
    assert note == "The limit on tokens left fewer demonstrations, in the mean: Icl-gold on CR 1.5 of 4."
    roomy = [{**each, "kept": 4} for each in rows]
    other = write_folder(tmp_path / "other", roomy, model="large", identity="2")
    (note,) = [n for n in make_report([tmp_path / "r", other]).main.notes if "limit on tokens" in n]
    assert note.endswith("in the mean: Icl-gold (tiny) on CR 1.5 of 4.")


def test_groups_of_several_tasks_have_an_average(tmp_path):
    rows = make_rows(CHANCES, examples=30)
    table = make_report(
        [write_folder(tmp_path / "r", rows, covered=dict.fromkeys(["CR", "SST2", "AGNews"], True))]
    ).main
    assert [c.name for c in table.columns] == ["CR", "SST2", "AGNews", "Avg. covered"]
    entries = table.sections[1].rows[1].entries
    assert entries[3].value == pytest.approx(sum(e.value for e in entries[:3]) / 3)


def test_a_control_that_wins_is_named(tmp_path, folder):
    notes = make_report([folder]).main.notes
    assert any("the control Logistic, which sees labelled data, beats z-icl on average" in note for note in notes)
    assert not any("Majority beats" in note for note in notes)
    assert not any("every language-model method" in n for n in notes if n.startswith("Channel"))
    strong = write_folder(tmp_path / "strong", make_rows({**CHANCES, "cosine-words": 1.0}, examples=30))
    notes = make_report([strong]).main.notes
    assert any(
        "the control Cosine-words beats z-icl on average" in note
        and "on 3 of 3 tasks (CR, SST2, AGNews); it beats every language-model method on average" in note
        for note in notes
    )


def test_stand_ins_and_oracles_are_explained(folder):
    notes = make_report([folder]).main.notes
    assert "§ AGNews: stand-in: made up." in notes
    assert any(note.startswith("An oracle sees labelled data") for note in notes)


def test_a_task_of_unknown_coverage_says_how_to_set_it(tmp_path, folder):
    (note,) = [note for note in make_report([folder]).main.notes if note.startswith("Coverage unknown")]
    assert "covers AGNews." in note
    assert "[covered]" in note
    known = write_folder(tmp_path / "known", make_rows(CHANCES, examples=9), covered=dict.fromkeys(COVERED, True))
    assert not any("Coverage unknown" in note for note in make_report([known]).main.notes)


def test_unfinished_results_show_what_is_missing(tmp_path):
    rows = make_rows({"no-demos": 0.5, "z-icl": 0.8}, examples=20, tasks=["CR"])
    rows += make_rows({"no-demos": 0.5}, examples=10, tasks=["SST2"])
    folder = write_folder(tmp_path / "r", rows, planned=20)
    report = make_report([folder])
    text = report.render("markdown")
    line = next(line for line in text.splitlines() if line.startswith("| Z-icl |"))
    assert line.endswith("| – |")
    assert "10 of 80 predictions are missing, in 1 cell:" in text
    assert "‡" in next(line for line in text.splitlines() if line.startswith("| No-demos |"))
    for kind in ("csv", "latex", "json"):
        assert report.render(kind)


def test_differences_are_in_every_section_for_controls_too(folder):
    report = make_report([folder])
    found = {(d.section.inference, d.method, d.baseline, d.task) for d in report.differences}
    assert ("channel", "majority", "no-demos", "CR") in found
    assert ("direct", "majority", "no-demos", None) in found
    assert ("channel", "z-icl", "icl-gold", None) in found
    assert ("direct", "z-icl", "icl-gold", None) not in found
    assert not any(method == baseline for _, method, baseline, _ in found)
    assert all(d.section.inference != NO_INFERENCE and d.p_holm >= d.p for d in report.differences)
    ours = next(
        d for d in report.differences
        if (d.section.inference, d.method, d.baseline, d.task) == ("channel", "z-icl", "no-demos", None)
    )  # fmt: skip
    assert ours.tasks == 3
    assert ours.low <= ours.estimate <= ours.high
    assert ours.p_holm < 0.05


def test_controls_that_do_not_depend_on_the_model_are_listed_once(tmp_path):
    rows = make_rows(CHANCES, examples=20)
    folders = [write_folder(tmp_path / name, rows, model=name) for name in ("one", "two")]
    titles = [section.title for section in make_report(folders).main.sections]
    assert titles == [
        "Majority and controls", "Channel one, the task's template", "Channel two, the task's template"
    ]  # fmt: skip


def test_compared_with_the_paper(folder, tmp_path):
    report = make_report([folder], compare="paper")
    titles = [section.title for section in report.main.sections]
    assert "Channel GPT-J (paper)" in titles
    assert "Direct GPT-3 (paper)" in titles
    text = report.render("markdown")
    assert "| Z-ICL | **80.1** ± 0.1 | **82.6** ± 0.2 | – |" in text
    assert "82.4** ± 74.7†" in text
    assert "† As printed in the paper, but doubtful: GPT-3, channel, z-icl, SST2:" in text
    assert "Not in the paper: AGNews." in text
    assert len(report.to_dict()["paper"]) == 34
    # Half of the examples are of each label, as in the paper's CR and SST2.
    assert not any("Other examples" in note for note in report.main.notes)
    with pytest.raises(ConfigError, match="the paper prints accuracy"):
        make_report([folder], "macro-f1", compare="paper")


def test_examples_with_other_shares_of_labels_than_the_papers_are_named(tmp_path):
    rows = make_rows({"z-icl": 0.8}, examples=10, tasks=["CR", "SST2"])
    skewed = [each for each in rows if each["task"] == "SST2" or each["gold"] == "good" or each["example"] == "CR-0"]
    notes = make_report([write_folder(tmp_path / "r", skewed)], compare="paper").main.notes
    (note,) = [note for note in notes if "Other examples" in note]
    assert "here and in the paper, 72.2 and 50.0 % of CR." in note
    # Of fifteen examples of two equally frequent labels one label has eight.
    odd = write_folder(tmp_path / "odd", make_rows({"z-icl": 0.8}, examples=15, tasks=["CR"]))
    assert not any("Other examples" in note for note in make_report([odd], compare="paper").main.notes)


def test_the_papers_averages_over_other_tasks_are_computed(tmp_path):
    rows = make_rows({"z-icl": 0.8, "no-demos": 0.5}, examples=10, tasks=["CR", "SST2"])
    folder = write_folder(tmp_path / "r", rows, covered={"CR": True, "SST2": True})
    main = make_report([folder], compare="paper").main
    section = next(s for s in main.sections if s.title == "Channel GPT-J (paper)")
    average = next(r for r in section.rows if r.method == "z-icl").entries[-1]
    assert average.value == pytest.approx((80.1 + 82.6) / 2)
    assert average.deviation is None
    assert any("computed from the printed cells" in note for note in main.notes)


def test_macro_f1_in_place_of_accuracy(folder):
    report = make_report([folder], "macro-f1")
    assert report.main.title.startswith("Macro-F1")
    assert report.main.sections != make_report([folder]).main.sections


def test_copy_rates_have_their_table(tmp_path):
    demos = {"demo_labels": ["bad", "good"], "similarities": [0.9, 0.1], "kept": 2}
    rows = [row("CR", "naive", "good", "good", f"{n}", **demos) for n in range(4)]
    text = make_report([write_folder(tmp_path / "r", rows)]).render("markdown")
    assert "**Copy rate" in text
    assert "| Naive | 0 / 100 |" in text
    assert "- CR: bad / good." in text
