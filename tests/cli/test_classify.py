"""zicl classify on tiny models: texts and files in, labels out, resumed, calibrated, left to a person."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import LABELS, write_texts
from tests.conftest import DOCUMENTS
from zicl.cli import classify as classify_module
from zicl.exceptions import StorageError


def test_classify_texts(run, options):
    code, out, err = run("classify", "The soup was cold.", "A bold film.", *options)
    assert code == 0, err
    assert "The soup was cold." in out
    assert "2 rows to label" in err
    assert "great as good" in err
    assert "label frequencies: terrible" in err


def test_the_name_of_a_file_is_not_taken_for_a_text(run, options, tmp_path, monkeypatch):
    path = table(tmp_path, "csv", 3)
    code, out, err = run("classify", path, *COLUMNS, "--json", *options)
    assert code == 0, err
    assert [json.loads(line)["key"] for line in out.splitlines()] == ["r0", "r1", "r2"]
    code, out, err = run("classify", path, "A bold film.", *options)
    assert (code, out) == (2, "")
    assert f"--file {path}" in err
    code, _, err = run("classify", tmp_path / "missing.csv", *options)
    assert code == 2
    assert "there is no file" in err
    assert "zicl classify -" in err
    code, out, err = run("classify", tmp_path, *options)
    assert (code, out) == (2, "")
    assert "is a folder" in err
    # What cannot be the name of a file is a text.
    assert run("classify", "so long " * 2000, *options)[0] == 0


def test_data_goes_to_standard_output_and_all_else_to_standard_error(run, options):
    code, out, err = run("classify", "-", "--json", *options, stdin="The soup was cold.\n\nA bold film.\n")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert len({row["id"] for row in rows}) == 2
    for row in rows:
        assert row["p:great"] + row["p:terrible"] == pytest.approx(1, abs=1e-5)
        assert row["log_likelihood:great"] < 0
        assert row["tokens:great"] > 0


def table(tmp_path, kind, count=40):
    rows = [{"key": f"r{n}", "body": f"{DOCUMENTS[n % 10]} Take {n}.", "team": "north"} for n in range(count)]
    path = tmp_path / f"tickets.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


COLUMNS = ["--text-column", "body", "--id-column", "key"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_keep_their_columns(run, options, tmp_path, kind):
    target = tmp_path / "out.csv"
    code, out, err = run("classify", "-f", table(tmp_path, kind, 18), *COLUMNS, "-o", target, *options)
    assert code == 0, err
    assert out == ""
    assert "on this machine" in err
    assert "least certain:" in err
    with target.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["key"] for row in rows] == [f"r{n}" for n in range(18)]
    assert rows[0]["body"].endswith("Take 0.")
    assert {row["team"] for row in rows} == {"north"}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_killed_run_ends_with_the_same_bytes_and_summary(run, options, tmp_path, monkeypatch, kind):
    source, whole, target = table(tmp_path, "csv"), tmp_path / f"whole.{kind}", tmp_path / f"killed.{kind}"
    code, _, said = run("classify", "-f", source, *COLUMNS, "-o", whole, *options)
    assert code == 0, said
    real, calls = classify_module.added_values, []

    def killed(*given):
        calls.append(given)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(classify_module, "added_values", killed)
        code, _, err = run("classify", "-f", source, *COLUMNS, "-o", target, *options)
        assert code == 130
        assert "run the same command again" in err
        assert "Traceback" not in err
    # What a kill in the middle of a write leaves behind is cut off.
    with target.open("ab") as stream:
        stream.write(b'half a "row')
    code, _, err = run("classify", "-f", source, *COLUMNS, "-o", target, *options)
    assert code == 0, err
    assert "16 rows are in" in err
    assert "16 rows were labelled before and 24 now: what follows is about all 40" in err
    assert target.read_bytes() == whole.read_bytes()
    assert summary(err) == summary(said)
    code, _, err = run("classify", "-f", source, *COLUMNS, "-o", target, *options)
    assert "nothing was left to do: 40 rows were labelled before" in err
    assert summary(err) == summary(said)


def summary(said):
    """The closing summary."""
    return said[said.index("label frequencies") :]


def test_columns_of_the_input_that_are_called_like_unwritten_ones_are_kept(run, options, tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("review,margin,input_cut\n" + "".join(f"{text},{n},yes\n" for n, text in enumerate(DOCUMENTS)))
    given = ["--text-column", "review", "--columns", "predicted", "-o", target]
    code, _, err = run("classify", "-f", source, *given, *options)
    assert code == 0, err
    with target.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["review"], row["margin"], row["input_cut"]) for row in rows] == [
        (text, str(n), "yes") for n, text in enumerate(DOCUMENTS)
    ]


def test_a_summary_of_rows_whose_labels_were_not_written_says_so(run, options, tmp_path):
    given = ["-o", tmp_path / "out.csv", "--columns", "p", *COLUMNS, *options]
    assert run("classify", "-f", table(tmp_path, "csv", 5), *given)[0] == 0
    code, _, err = run("classify", "-f", table(tmp_path, "csv", 7), *given)
    assert code == 0, err
    assert "5 rows were labelled before, without the columns of labels and margins" in err
    assert "about 2 new rows" in err


def test_a_failed_run_leaves_nothing_behind_and_a_begun_one_says_what_is_there(run, options, tmp_path, monkeypatch):
    source, target = table(tmp_path, "csv"), tmp_path / "outputs" / "out.csv"
    real, calls = classify_module.added_values, []

    def failing(*given):
        calls.append(given)
        if len(calls) in (1, 18):
            raise StorageError("the disk is full")
        return real(*given)

    monkeypatch.setattr(classify_module, "added_values", failing)
    code, _, err = run("classify", "-f", source, *COLUMNS, "-o", target, *options)
    assert (code, target.parent.exists()) == (1, False)
    assert "the disk is full" in err
    code, _, err = run("classify", "-f", source, *COLUMNS, "-o", target, *options)
    assert code == 1
    assert f"{target} has 16 of 40 rows: the same command labels the rest" in err


def test_a_workbook_that_could_not_be_made_is_made_by_the_same_command(run, options, tmp_path, monkeypatch):
    def failing(*_):
        raise StorageError("the disk is full")

    given = ["classify", "-f", table(tmp_path, "csv", 3), *COLUMNS, "-o", tmp_path / "out.xlsx", *options]
    with monkeypatch.context() as patch:
        patch.setattr("zicl.inputs.output.write_workbook", failing)
        code, _, err = run(*given)
    assert code == 1
    assert "has 3 of 3 rows" in err
    assert f"the same command makes {tmp_path / 'out.xlsx'} of them" in err
    assert run(*given)[0] == 0
    assert (tmp_path / "out.xlsx").is_file()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_without_a_text_are_kept_without_a_label(run, options, tmp_path, kind):
    source, target = tmp_path / "in.jsonl", tmp_path / f"out.{kind}"
    source.write_text(
        "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(["A", None, " ", "B"]))
    )
    code, _, err = run("classify", "-f", source, "-o", target, *options)
    assert code == 2
    assert "row 2, column 'text', is empty, as in 2 rows in total (2, 3)" in err
    assert "--skip-empty" in err
    assert not target.exists()
    for _ in range(2):
        code, _, err = run("classify", "-f", source, "-o", target, "--skip-empty", *options)
        assert code == 0, err
        assert "without a text: 2 of 4 rows" in err
        assert "2 rows without a text got no label" in err
    with target.open(newline="") as stream:
        rows = list(csv.DictReader(stream) if kind == "csv" else map(json.loads, stream))
    assert [str(row["id"]) for row in rows] == ["0", "1", "2", "3"]
    assert [bool(row["predicted"]) for row in rows] == [True, False, False, True]
    assert not any(rows[1][name] for name in ("predicted", "probability", "margin"))
    code, _, err = run("check", "sample", target, "-o", tmp_path / "sheet.csv", "--rows", 2)
    assert code == 0, err
    assert "2 of 2 rows" in err


def test_an_output_has_the_columns_a_person_asks_for_and_json_all(run, options, tmp_path):
    source, target = write_texts(tmp_path / "in.csv", 3), tmp_path / "out.csv"
    code, out, err = run("classify", "-f", source, "-o", target, "--json", *options)
    assert code == 0, err
    assert target.read_text().splitlines()[0] == "id,text,predicted,probability,margin"
    assert {"p:great", "log_likelihood:great", "demonstrations", "review"} <= set(json.loads(out.splitlines()[0]))
    given = ["classify", "-f", source, "--overwrite", "-o", target, *options]
    assert run(*given, "--columns", "predicted,p")[0] == 0
    assert target.read_text().splitlines()[0] == "id,text,predicted,p:terrible,p:great"
    code, _, err = run("check", "sample", target, "-o", tmp_path / "sheet.csv", "--rows", 3)
    assert code == 2
    assert "no column 'margin'" in err
    assert "--columns all" in err
    code, _, err = run(*given, "--columns", "predicted,value")
    assert code == 2
    assert "--columns value: there are no such columns with these options" in err
    for wrong, message in (("predicted,q", "'q' is no kind of column"), ("all,p", "'all' is no kind")):
        code, _, err = run(*given, "--columns", wrong)
        assert code == 2
        assert message in err
    code, _, err = run("classify", "A bold film.", "--columns", "all", *options)
    assert code == 2
    assert "write a file with -o" in err


def test_an_output_is_checked_without_the_probabilities_of_all_labels(run, options, tmp_path):
    target, note = tmp_path / "out.csv", tmp_path / ".out.csv.zicl.json"
    assert run("classify", "-f", write_texts(tmp_path / "in.csv", 8), "-o", target, *options)[0] == 0
    code, _, err = run("check", "sample", target, "-o", tmp_path / "sheet.csv", "--rows", 4)
    assert code == 0, err
    assert "for terrible, great" in err
    note.unlink()
    code, _, err = run("check", "sample", target, "-o", tmp_path / "sheet.csv", "--rows", 4)
    assert code == 2
    assert ".out.csv.zicl.json is not beside it" in err


def test_only_new_rows_are_labelled(run, options, tmp_path):
    target = tmp_path / "out.jsonl"
    run("classify", "-f", table(tmp_path, "csv", 5), *COLUMNS, "-o", target, *options)
    before = target.read_text()
    code, _, err = run("classify", "-f", table(tmp_path, "csv", 7), *COLUMNS, "-o", target, *options)
    assert code == 0
    assert "5 rows are in" in err
    assert target.read_text().startswith(before)
    assert len(target.read_text().splitlines()) == 7
    code, _, err = run("classify", "-f", table(tmp_path, "csv", 7), *COLUMNS, "-o", target, *options)
    assert "nothing was left to do" in err
    code, _, err = run("classify", "-f", table(tmp_path, "csv", 7), *COLUMNS, "-o", target, *options, "--seed", 5)
    assert code == 2
    assert "other settings (seed)" in err


def test_rows_of_another_column_or_text_are_not_mixed(run, options, tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("id,title,body\n1,A dull film.,A bold film.\n2,Snow fell.,It rained.\n")
    assert run("classify", "-f", source, "--text-column", "title", "-o", target, *options)[0] == 0
    code, _, err = run("classify", "-f", source, "--text-column", "body", "-o", target, *options)
    assert code == 2
    assert "other settings (columns)" in err
    source.write_text("id,title,body\n1,A dull film.,A bold film.\n2,The sun shone.,It rained.\n")
    code, _, err = run("classify", "-f", source, "--text-column", "title", "-o", target, *options)
    assert code == 2
    assert "the row '2' has another text than when it was labelled" in err
    source.write_text("id,title,body\n1,A dull film.,A bold film.\n2,Snow fell.,It rained.\n3,A new film.,-\n")
    code, _, err = run("classify", "-f", source, "--text-column", "title", "-o", target, *options)
    assert code == 0, err
    assert "2 rows are in" in err


def test_saving_and_using_a_classifier(run, options, tmp_path):
    saved = tmp_path / "s.zicl-clf"
    first = run("classify", "A bold film.", "--json", "--save", saved, *options)
    again = run("classify", "A bold film.", "--json", "--with", saved, "--offline")
    assert first[0] == again[0] == 0, again[2]
    assert first[1] == again[1]
    assert run("classify", "A bold film.", "--save", saved, *options)[0] == 0
    assert run("classify", "A bold film.", "--save", saved, *options, "--seed", 4)[0] == 1
    code, _, err = run("classify", "A bold film.", "--with", saved, "--k", 2)
    assert code == 2
    assert "brings its own settings" in err


def test_bad_files_are_named(run, options, tmp_path):
    path = tmp_path / "rows.csv"
    for text, message in [
        ("id,text\n1,fine\n1,again\n", "occurs twice"),
        ("id,text\n1,fine\n2,\n", "row 2 below the header, column 'text', is empty"),
        ("id,body\n1,fine\n", "there is no column 'text'"),
        ("id,text\n", "holds no rows"),
    ]:
        path.write_text(text)
        code, _, err = run("classify", "-f", path, "--id-column", "id", *options)
        assert code == 2
        assert message in err
    path.write_text("id,text,predicted\n1,fine,old\n")
    code, _, err = run("classify", "-f", path, "--id-column", "id", "-o", tmp_path / "o.csv", *options)
    assert code == 2
    assert "columns that the output needs: predicted" in err


def test_calibration_and_shares_are_fitted_on_the_file_and_told(run, options, tmp_path):
    file = ["--file", table(tmp_path, "csv", 12), *COLUMNS]
    more = [
        "--calibrate",
        "batch",
        "--set",
        "retrieval.share=4",
        "--inference",
        "both",
        "--save",
        tmp_path / "c.zicl-clf",
    ]
    code, _, err = run("classify", *options, *more, *file, "-o", tmp_path / "out.csv")
    assert code == 0, err
    assert "label priors (channel), from" in err
    assert "label priors (direct), from" in err
    assert "demonstration sets, from" in err
    before = (tmp_path / "out.csv").read_text()
    code, _, err = run(
        "classify",
        "--with",
        tmp_path / "c.zicl-clf",
        *file,
        "-o",
        tmp_path / "again.csv",
    )
    assert code == 0, err
    assert [line.split(",")[:3] for line in (tmp_path / "again.csv").read_text().splitlines()] == [
        line.split(",")[:3] for line in before.splitlines()
    ]


def test_rows_for_a_person_have_no_label_and_nothing_is_lost(run, options, tmp_path):
    file, output = ["--file", table(tmp_path, "csv", 12), *COLUMNS], tmp_path / "out.jsonl"
    code, _, err = run("classify", *options, *file, "-o", output, "--review-below", 1)
    assert code == 0, err
    assert "100.0% below 1" in err
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert {row["predicted"] for row in rows} == {""}
    assert all(row["review"] and row["p:great"] > 0 for row in rows)
    code, _, err = run("check", "sample", output, "-o", tmp_path / "sheet.csv", "--rows", 3, *COLUMNS)
    assert code == 0, err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--calibrate", "bach"], "method: it is not"),
        (["--set", "calibration.draws=0"], "draws"),
        (["--set", "calibration.priors={great"], "not JSON"),
        (["--calibrate", "batch"], "--fit FILE"),
    ],
)
def test_wrong_calibrations_are_named(run, options, wrong, message):
    code, _, err = run("classify", "The soup was cold.", *options, *wrong)
    assert code == 2
    assert message in err


def test_pairs_and_options_of_each_row(run, options, tmp_path):
    (tmp_path / "pairs.csv").write_text("text,then\nThe soup was cold.,Nobody ate it.\nShe sang.,All were silent.\n")
    template = ["--template", r"Premise: {first}\nHypothesis: {second}|So: {label}"]
    code, out, err = run(
        "classify", "-f", tmp_path / "pairs.csv", "--pair-column", "then", *template, *options, "--json"
    )
    assert code == 0, err
    assert [json.loads(line)["then"] for line in out.splitlines()] == ["Nobody ate it.", "All were silent."]

    (tmp_path / "choices.csv").write_text(
        "text,choices\nThe soup was cold.,I left.|It rained.|A pear fell.\nShe sang.,We heard.|No.\n"
    )
    given = [value for value in options if value not in ("--labels", LABELS)]
    chosen = ["--labels", 3, "--template", "choice", "--options-column", "choices", "-o", tmp_path / "out.jsonl"]
    code, _, err = run("classify", "-f", tmp_path / "choices.csv", "--columns", "all", *given, *chosen)
    assert code == 0, err
    first, second = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert first["p:1"] + first["p:2"] + first["p:3"] == pytest.approx(1, abs=1e-5)
    assert second["p:3"] is None
    assert second["predicted"] in ("1", "2")


# More rows than are scored at once, all of them right.
_CHOICES = "text,choices\n" + "".join(f"text {number},great|terrible\n" for number in range(20))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,choices\na,only one\n", "choices.csv, row 1 below the header: expected at least two options"),
        ("text,choices\na,[1\n", "row 1 below the header: its options are not JSON"),
        ("text,choice\na,b\n", "--options-column"),
        (_CHOICES + "z,great|gerat\n", "row 21 below the header has the option 'gerat', which is no label"),
        (_CHOICES + "z,great|great\n", "row 21 below the header has the option 'great' twice"),
    ],
)
def test_wrong_options_name_their_row(run, options, tmp_path, content, message):
    (tmp_path / "choices.csv").write_text(content)
    code, _, err = run("classify", "-f", tmp_path / "choices.csv", "--options-column", "choices", *options)
    assert code == 2
    assert message in err


def test_labels_in_brackets_are_shown_as_they_are(run, corpus, lm_folder):
    given = [
        "--corpus",
        corpus,
        "--method",
        "z-icl",
        "--lm",
        lm_folder,
        "--k",
        3,
        "--offline",
        "--synonyms",
        "[/x]=good",
        "--synonyms",
    ]
    code, out, err = run("classify", "The soup was cold.", "--labels", "[pos],[/x]", *given, "[pos]=bad")
    assert code == 0, err
    assert "[pos]" in out
    assert "[/x]" in out


def test_columns_of_terms_are_there_where_terms_are(run, options, tmp_path):
    table = write_texts(tmp_path / "in.csv", 3)
    options = [*options, "--columns", "all"]
    code, _, err = run("classify", "-f", table, "-o", tmp_path / "a.csv", "--calibrate", "pmi", *options)
    assert code == 0, err
    names = (tmp_path / "a.csv").read_text().splitlines()[0].split(",")
    assert "value:great" in names
    assert not [name for name in names if name.startswith("term:")]
    assert run("classify", "-f", table, "-o", tmp_path / "b.csv", "--inference", "both", *options)[0] == 0
    assert "term:direct:great" in (tmp_path / "b.csv").read_text().splitlines()[0]


def test_given_priors_are_said_to_be_given(run, options):
    priors = 'calibration.priors={"great": 0.8, "terrible": 0.2}'
    code, _, err = run("classify", "The soup was cold.", "--calibrate", "batch", "--set", priors, *options)
    assert code == 0, err
    assert "label priors (channel), as given" in err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["--set", "calibration.premise=a film"],
            "premise belongs to the method 'pmi' and changes nothing with 'none'",
        ),
        (["--calibrate", "pmi", "--set", "calibration.draws=8"], "draws belongs to the method 'domain'"),
        (["--fit", "texts.csv"], "--fit texts.csv: nothing is fitted on texts with these options"),
        (
            ["--method", "no-demos", "--set", "retrieval.method=nearest"],
            "no demonstrations are shown, and retrieval.method was",
        ),
        (["--method", "no-demos", "--set", "labelling.balanced=true"], "and labelling.balanced was set"),
        (["--lm", "http://127.0.0.1:1/v1#m", "--set", "scoring.dtype=bfloat16"], "--set scoring.dtype is for a model"),
        (
            ["--lm", "http://127.0.0.1:1/v1#m", "--set", "scoring.dtype=bfloat16"],
            "--set scoring.dtype is for a model that is loaded here",
        ),
    ],
)
def test_options_that_would_change_nothing_are_refused(run, options, given, message):
    own = options if "no-demos" not in given else [*options[: options.index("--k")], "--offline"]
    code, _, err = run("classify", "The soup was cold.", *own, *given)
    assert code == 2
    assert message in err


@pytest.mark.parametrize("command", ["classify", "explain"])
def test_a_folder_that_is_no_classifier_is_said_to_be_none_whatever_else_is_given(run, tmp_path, command):
    code, _, err = run(command, "x", "--with", tmp_path / "typo.zicl-clf", "--allow-remote-text")
    assert code == 2
    assert "typo.zicl-clf is not a saved classifier" in err
