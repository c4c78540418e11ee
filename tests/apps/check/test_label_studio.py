"""Tasks for Label Studio and its exports, in the forms that its converter writes."""

import json
import xml.etree.ElementTree as ET

import pytest

from tests.apps.check.reports import LABELS, predictions
from zicl.apps.check.label_studio import labeling_config, make_tasks, read_export
from zicl.apps.check.predictions import OutputPrediction
from zicl.apps.check.sample import stratified_sample
from zicl.apps.check.sheet import key_path, read_gold, read_sheet, write_sheet
from zicl.exceptions import StorageError, TextError, UsageError
from zicl.inputs.pair import Pair


def annotation(*choices, control="gold", **more):
    """What a person has submitted."""
    result = {"from_name": control, "to_name": "text", "type": "choices", "value": {"choices": list(choices)}}
    return {"id": 7, "result": [result] if choices else [], "was_cancelled": False, "ground_truth": False, **more}


def export(path, tasks, annotations):
    """An export of all annotations: task 1 has the first list of these, and so on."""
    made = [
        {**task, "id": number, "annotations": given, "drafts": [], "inner_id": number}
        for number, (task, given) in enumerate(zip(tasks, annotations, strict=True), start=100)
    ]
    path.write_text(json.dumps(made))
    return path


def _shortened(value):
    return value["choices"][0] if len(value["choices"]) == 1 else value


def export_minimal(path, tasks, annotations):
    """The same as JSON-MIN: one record per submitted annotation, and one choice as a string."""
    records = []
    for number, (task, given) in enumerate(zip(tasks, annotations, strict=True), start=100):
        for each in given:
            if each["was_cancelled"]:
                continue
            values = [result["value"] for result in each["result"]]
            gold = dict.fromkeys(["gold"][: len(values)], values and _shortened(values[0]))
            records.append({**task["data"], "id": number, **gold, "annotator": 1, "annotation_id": 7})
    path.write_text(json.dumps(records))
    return path


@pytest.fixture(params=[export, export_minimal])
def finished(request, tmp_path):
    """Write an export with these annotations of the tasks."""

    def write(tasks, annotations, name="project-1.json"):
        return request.param(tmp_path / name, tasks, annotations)

    return write


def drawn(tmp_path, rows, labels=LABELS, **options):
    path, sheet = tmp_path / "tasks.json", stratified_sample(rows, labels, len(rows))
    write_sheet(path, sheet, kind="label-studio", **options)
    return path, sheet, json.loads(path.read_text())


def test_tasks_have_the_predictions_and_the_interface_has_the_labels(tmp_path):
    rows = [*predictions(8), OutputPrediction("x", 'Rain, "they" said', "a < b & c", 0.25)]
    path, sheet, tasks = drawn(tmp_path, rows, (*LABELS, "a < b & c"))
    by_id = {task["data"]["zicl_id"]: task for task in tasks}
    assert list(by_id) == [row.prediction.id for row in sheet.rows]
    assert by_id["x"]["data"] == {"zicl_id": "x", "text": 'Rain, "they" said'}
    [prediction] = by_id["x"]["predictions"]
    assert prediction["score"] == 0.25
    assert prediction["result"] == annotation("a < b & c")["result"]
    config = ET.parse(tmp_path / "tasks.labeling.xml").getroot()
    choices = config.find("Choices")
    assert (choices.get("name"), choices.get("toName"), choices.get("choice")) == ("gold", "text", "single")
    assert [choice.get("value") for choice in choices] == [*LABELS, "a < b & c"]
    assert [(text.get("name"), text.get("value")) for text in config.findall("Text")] == [("text", "$text")]
    assert key_path(path).is_file()


def test_blind_tasks_say_nothing_of_the_predictions(tmp_path):
    *_, tasks = drawn(tmp_path, predictions(8), blind=True)
    assert {tuple(task) for task in tasks} == {("data",)}
    assert {tuple(sorted(task["data"])) for task in tasks} == {("text", "zicl_id")}


def test_an_export_is_scored_with_the_key_of_the_tasks(tmp_path, finished):
    path, sheet, tasks = drawn(tmp_path, predictions(6))
    given = [
        [annotation("stormy")],
        [],
        [annotation("calm", was_cancelled=True)],
        [annotation("foggy"), annotation("stormy", was_cancelled=True)],
        [annotation()],
        [annotation("calm"), annotation("calm"), annotation("foggy")],
    ]
    read = read_sheet(finished(tasks, given), path)
    assert [row.gold for row in read.rows] == ["stormy", "", "", "foggy", "", "calm"]
    assert [(row.weight, row.prediction) for row in read.rows] == [(row.weight, row.prediction) for row in sheet.rows]
    with pytest.raises(StorageError, match=r"\.project-1\.json\.key\.json, .* is missing") as error:
        read_sheet(finished(tasks, given))
    assert "--sheet" in error.value.hint
    # Saved under the name of the tasks, it needs no other.
    assert read_sheet(finished(tasks, given, "tasks.json")) == read
    with pytest.raises(StorageError, match="3 labels filled in by hand"):
        write_sheet(path, sheet, kind="label-studio")


def test_tasks_that_may_be_labelled_elsewhere_are_not_drawn_again(tmp_path):
    path, sheet, _ = drawn(tmp_path, predictions(6))
    path.rename(tmp_path / "imported.json")
    before = key_path(path).read_bytes()
    with pytest.raises(StorageError, match="may be labelled in Label Studio") as error:
        write_sheet(path, sheet, kind="label-studio")
    assert "--overwrite" in error.value.hint
    assert key_path(path).read_bytes() == before
    write_sheet(path, sheet, kind="label-studio", overwrite=True)
    assert path.is_file()


def test_several_labels_and_none_of_them(tmp_path, finished):
    rows = [
        OutputPrediction(f"r{n}", f"Report {n}.", p, n / 9, multi=True)
        for n, p in enumerate(["calm|foggy", "", "calm"])
    ]
    path, _, tasks = drawn(tmp_path, rows)
    shown = {task["data"]["zicl_id"]: task["predictions"][0]["result"][0]["value"]["choices"] for task in tasks}
    assert shown == {"r0": ["calm", "foggy"], "r1": ["-"], "r2": ["calm"]}
    choices = ET.fromstring((tmp_path / "tasks.labeling.xml").read_text()).find("Choices")
    assert choices.get("choice") == "multiple"
    assert [choice.get("value") for choice in choices] == [*LABELS, "-"]
    given = {"r0": [annotation("foggy", "stormy"), annotation("stormy", "foggy")], "r1": [annotation("-")], "r2": []}
    read = read_sheet(finished(tasks, [given[task["data"]["zicl_id"]] for task in tasks]), path)
    assert {row.prediction.id: row.gold for row in read.rows} == {"r0": "stormy|foggy", "r1": "-", "r2": ""}


def test_pairs_and_labels_that_differ_from_row_to_row(tmp_path, finished):
    choices = {"1": "a cat", "2": "a dog"}
    rows = [OutputPrediction(f"r{n}", Pair(f"Report {n}.", "It rains."), "1", n / 9, choices) for n in range(3)]
    path, _, tasks = drawn(tmp_path, rows, ("1", "2"))
    assert tasks[0]["data"]["second_text"] == "It rains."
    assert tasks[0]["data"]["choices"] == [{"value": "1: a cat"}, {"value": "2: a dog"}]
    assert tasks[0]["predictions"][0]["result"][0]["value"]["choices"] == ["1: a cat"]
    config = ET.fromstring((tmp_path / "tasks.labeling.xml").read_text())
    assert config.find("Choices").get("value") == "$choices"
    assert [text.get("value") for text in config.findall("Text")] == ["$text", "$second_text"]
    read = read_sheet(finished(tasks, [[annotation("2: a dog")]] * 3), path)
    assert [row.gold for row in read.rows] == ["2"] * 3


def test_annotators_that_disagree_are_named_unless_one_is_the_ground_truth(tmp_path, finished):
    path, _, tasks = drawn(tmp_path, predictions(3))
    given = [
        [annotation("calm"), annotation("foggy")],
        [annotation("calm")],
        [annotation("foggy"), annotation("stormy")],
    ]
    with pytest.raises(TextError, match=r"disagree about 2 of 3 tasks: .*row 1: calm or foggy; .*row 3") as error:
        read_sheet(finished(tasks, given), path)
    assert "ground truth" in error.value.hint
    given[0][1]["ground_truth"] = given[2][0]["ground_truth"] = True
    read = read_sheet(export(tmp_path / "all.json", tasks, given), path)
    assert [row.gold for row in read.rows] == ["foggy", "calm", "foggy"]


def test_an_unknown_label_is_named(tmp_path, finished):
    path, _, tasks = drawn(tmp_path, predictions(3))
    with pytest.raises(TextError, match=r"project-1.json, row 2 .*the label 'hail' .* is unknown"):
        read_sheet(finished(tasks, [[annotation("calm")], [annotation("hail")], []]), path)


def test_an_export_of_any_project_is_gold(tmp_path, finished):
    tasks = [{"data": {"body": text}} for text in ("One lamp.", "Two lamps.", "Three lamps.")]
    path = finished(tasks, [[annotation("calm")], [annotation("stormy")], []])
    assert read_gold(path, LABELS, text_column="body") == {"One lamp.": "calm", "Two lamps.": "stormy"}
    with pytest.raises(TextError, match="the task has no 'text'") as error:
        read_gold(path, LABELS)
    assert "--text-column; there are: body" in error.value.hint


def test_the_only_choices_are_the_labels_whatever_they_are_called(tmp_path):
    tasks = [{"data": {"text": "One lamp."}}]
    path = export(tmp_path / "a.json", tasks, [[annotation("calm", control="mood")]])
    assert read_gold(path, LABELS) == {"One lamp.": "calm"}
    two = annotation("calm", control="mood")
    two["result"] += annotation("yes", control="sure")["result"]
    with pytest.raises(TextError, match="has several choices: mood, sure") as error:
        read_gold(export(path, tasks, [[two]]), LABELS)
    assert 'name="gold"' in error.value.hint
    path.write_text(json.dumps([{"id": 1, "text": "One lamp.", "mood": "calm"}]))
    with pytest.raises(TextError, match="a record has no 'gold'; it has id, text, mood"):
        read_gold(path, LABELS)


def test_tasks_that_zicl_wrote_are_read_whatever_the_column_of_the_file_is_called(tmp_path, finished):
    _, sheet, tasks = drawn(tmp_path, predictions(4))
    path = finished(tasks, [[annotation(LABELS[0])] for _ in tasks])
    assert [row.text for row in read_export(path, "review")] == [row.prediction.text for row in sheet.rows]


@pytest.mark.parametrize(
    "content",
    [
        "[1]",
        '[{"data": {"text": "a"}, "annotations": {}}]',
        '[{"data": {"text": "a"}, "annotations": [1]}]',
        '[{"data": {"text": "a"}, "annotations": [{"result": {"a": 1}}]}]',
        '[{"data": {"text": "a"}, "annotations": [{"result": [{"type": "choices", "value": 1}]}]}]',
        '[{"data": {"text": 1}, "annotations": []}]',
        '[{"id": 1, "text": "a", "gold": {"choices": 1}}]',
        "[",
    ],
)
def test_what_is_no_export_is_named(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(TextError) as error:
        read_export(path)
    assert error.value.hint


def test_tasks_need_their_format(tmp_path):
    sheet = stratified_sample(predictions(3), LABELS, 3)
    with pytest.raises(UsageError, match=r"is a \.csv or \.xlsx file") as error:
        write_sheet(tmp_path / "tasks.json", sheet)
    assert "--format label-studio" in error.value.hint
    with pytest.raises(UsageError, match=r"is a \.json file"):
        write_sheet(tmp_path / "tasks.csv", sheet, kind="label-studio")


def test_the_parts_are_plain_data():
    rows = predictions(2)
    assert json.loads(json.dumps(make_tasks(rows, blind=False))) == make_tasks(rows, blind=False)
    assert labeling_config(rows, LABELS).startswith("<View>")
