"""zicl classify without a corpus: the file is the pile."""

import csv
import json
from datetime import date, datetime, time

import pytest

from zicl import ZICLClassifier
from zicl.cli.parsing import parse_duration
from zicl.exceptions import UsageError

SOUP = [f"The soup was cold and thin, number {n}, and the waiter smiled." for n in range(15)]
TRAIN = [f"We took the slow train north, number {n}, past every village." for n in range(15)]


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))


@pytest.fixture
def tickets(tmp_path):
    path = tmp_path / "tickets.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text"])
        writer.writerows(enumerate(SOUP + TRAIN))
    return path


@pytest.fixture
def command(tickets, encoder_folder):
    return ["classify", "--file", tickets, "--labels", "soup,train", "--encoder", encoder_folder, "--offline"]


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_file_and_labels_are_enough(run, command, tmp_path):
    command += ["--columns", "all"]
    code, out, err = run(*command, "-o", tmp_path / "out.csv", "--save", tmp_path / "c.zicl-clf")
    assert (code, out) == (0, "")
    assert "learned from 30 different texts" in err
    assert "asked about each text: encoder (one encoding by" in err
    err_of_file = err
    found = rows(tmp_path / "out.csv")
    assert len(found) == 30
    assert all(float(row["p:soup"]) + float(row["p:train"]) == pytest.approx(1, abs=1e-5) for row in found)
    assert {"term:encoder:soup", "term:pile:train", "value:soup"} <= set(found[0])
    assert not {"demonstrations", "log_likelihood:soup"} & set(found[0])
    before = (tmp_path / "out.csv").read_bytes()
    code, _, err = run(*command, "-o", tmp_path / "out.csv")
    assert code == 0
    assert "30 rows are in" in err
    assert (tmp_path / "out.csv").read_bytes() == before
    # A row of the file and the saved classifier say the same.
    code, out, _ = run("classify", "--with", tmp_path / "c.zicl-clf", "--json", "--offline", SOUP[0])
    assert json.loads(out)["p:soup"] == pytest.approx(float(found[0]["p:soup"]), abs=1e-5)
    code, out, _ = run("explain", "--with", tmp_path / "c.zicl-clf", "--offline", SOUP[0])
    assert code == 0
    said = json.loads(run("explain", "--with", tmp_path / "c.zicl-clf", "--offline", "--json", SOUP[0])[1])
    for words in ("together", "encoder alone", "pile", "nearest words of each label", said["verdict"]):
        assert words in " ".join(out.split())
    assert said["verdict"].endswith(said["label"])
    assert [each["words"] for each in said["nearest"]["soup"]] == ["soup"]
    near = said["nearest"]["train"][0]
    assert f"train {near['similarity']:.2f}" in out
    assert "probabilities and margins are not calibrated: zicl check" in err_of_file


@pytest.mark.parametrize("kind", ["xlsx", "parquet"])
def test_workbooks_and_parquet_files_go_in_and_out(run, command, tickets, tmp_path, kind):
    from zicl.inputs.arrow import write_parquet
    from zicl.inputs.excel import write_workbook
    from zicl.inputs.tables import read_records

    source, out = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    records = [{"id": n, "text": text, "stars": n / 2} for n, text in enumerate(SOUP + TRAIN)]
    (write_workbook if kind == "xlsx" else write_parquet)(source, ["id", "text", "stars"], records)
    command[2] = source
    code, _, err = run(*command, "-o", out)
    assert code == 0, err
    assert [{name: row[name] for name in records[0]} for row in read_records(str(out))] == records
    assert {type(row["margin"]) for row in read_records(str(out))} <= {int, float}
    before = out.read_bytes()
    code, _, err = run(*command, "-o", out)
    assert (code, out.read_bytes()) == (0, before)
    assert "30 rows are in" in err
    # Labels of it are drawn and checked like those of a .csv file.
    assert run("check", "sample", out, "-o", tmp_path / "sheet.csv", "--rows", 10)[0] == 0


def test_cells_of_a_workbook_keep_their_types(run, command, tmp_path):
    from openpyxl import load_workbook

    from zicl.inputs.excel import write_workbook

    source, out = tmp_path / "in.xlsx", tmp_path / "out.xlsx"
    kept = {
        "id": 7, "code": "007", "share": 0.25, "paid": True, "day": date(2024, 5, 1),
        "seen": datetime(2024, 5, 1, 9, 30), "at": time(9, 30), "said": "2024-05-01", "number": "12", "empty": None,
    }  # fmt: skip
    records = [{**kept, "id": n, "text": text} for n, text in enumerate(SOUP + TRAIN)]
    write_workbook(source, list(records[0]), records)
    command[2] = source
    # The second one has nothing left to do: it is made of the rows that were written.
    for _ in range(2):
        code, _, err = run(*command, "-o", out)
        assert code == 0, err
    assert "nothing was left to do" in err
    before, after = (load_workbook(path).active for path in (source, out))
    for number in (2, 3):
        as_read, as_written = (
            [(c.value, c.data_type, c.number_format) for c in sheet[number]] for sheet in (before, after)
        )
        assert as_written[: len(as_read)] == as_read
    # In other formats they are the text they always were, and that of a .csv file is never a number.
    assert run(*command, "-o", tmp_path / "out.csv")[0] == 0
    first = rows(tmp_path / "out.csv")[0]
    assert (first["day"], first["seen"], first["at"]) == ("2024-05-01", "2024-05-01 09:30:00", "09:30:00")
    command[2] = tmp_path / "table.csv"
    command[2].write_text("code,day,text\n" + "".join(f'007,2024-05-01,"{text}"\n' for text in SOUP + TRAIN))
    assert run(*command, "-o", tmp_path / "text.xlsx")[0] == 0
    assert [cell.value for cell in load_workbook(tmp_path / "text.xlsx").active[2]][1:3] == ["007", "2024-05-01"]


def test_a_csv_file_has_a_byte_order_mark_where_spreadsheets_need_it(run, command, tickets, tmp_path):
    """An output where its input has one, a sheet to label where it holds more than ASCII."""
    plain, marked, sheet = tmp_path / "plain.csv", tmp_path / "marked.csv", tmp_path / "sheet.csv"
    mark = "\ufeff".encode()
    assert run(*command, "-o", plain)[0] == 0
    assert run("check", "sample", plain, "-o", sheet, "--rows", 30)[0] == 0
    assert plain.read_bytes().isascii()
    assert sheet.read_bytes().isascii()
    tickets.write_text(tickets.read_text() + '99,"The crème brûlée was cold."\n', encoding="utf-8")
    assert run(*command, "-o", plain, "--overwrite")[0] == 0
    assert not plain.read_bytes().startswith(mark)
    tickets.write_text(tickets.read_text(encoding="utf-8"), encoding="utf-8-sig")
    for _ in range(2):
        code, _, err = run(*command, "-o", marked)
        assert code == 0, err
    assert "31 rows were labelled before" in err
    assert run("check", "sample", marked, "-o", sheet, "--rows", 31, "--overwrite")[0] == 0
    for path in (marked, sheet):
        assert path.read_bytes().startswith(mark)
        assert path.read_bytes().count(mark) == 1


def test_what_a_sheet_cannot_hold_is_said_before_models_are_loaded(run, command, tickets, tmp_path, monkeypatch):
    tickets.write_text(f"id,text\n1,{'lamp ' * 9000}\n")
    monkeypatch.setattr("zicl.classifier.ZICLClassifier.fit", lambda *_, **__: pytest.fail("it learned"))
    code, _, err = run(*command, "-o", tmp_path / "out.xlsx")
    assert code == 2
    assert "row 1, column 'text', has 45,000" in err


def test_a_column_of_bytes_is_refused_before_models_are_loaded_where_it_would_be_written(
    run, command, tmp_path, monkeypatch
):
    from zicl.inputs.arrow import write_parquet

    command[2] = tmp_path / "in.parquet"
    write_parquet(command[2], ["text", "scan"], [{"text": text, "scan": b"\xff"} for text in SOUP + TRAIN])
    assert run(*command)[0] == 0
    monkeypatch.setattr(ZICLClassifier, "fit", lambda *_, **__: pytest.fail("it learned"))
    for written in (["-o", tmp_path / "out.csv"], ["--json"]):
        code, out, err = run(*command, *written)
        assert (code, out) == (2, "")
        assert "the column 'scan' holds bytes" in err


def test_a_table_with_semicolons_is_read_and_said(run, command, tickets):
    tickets.write_text("\n".join(["id;text", *(f'{n};"{text}"' for n, text in enumerate(SOUP + TRAIN))]) + "\n")
    code, out, err = run(*command, "--json")
    assert code == 0
    assert err.splitlines()[0] == "tickets.csv: cells are separated by semicolons, as in its header"
    assert len(out.splitlines()) == 30


def test_a_changed_file_is_not_mixed_with_an_old_output(run, command, tickets, tmp_path):
    assert run(*command, "-o", tmp_path / "out.csv")[0] == 0
    tickets.write_text(tickets.read_text() + "99,The bread here is worth the walk.\n")
    code, _, err = run(*command, "-o", tmp_path / "out.csv")
    assert code == 2
    assert "out.csv" in err


def test_few_rows_are_labelled_with_a_warning(run, encoder_folder, tmp_path):
    (tmp_path / "few.csv").write_text("text\nThe soup was cold.\nThe train was late.\n")
    command = ["classify", "--file", tmp_path / "few.csv", "--labels", "soup,train", "--encoder", encoder_folder]
    code, out, err = run(*command, "--offline", "--json")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "warning: 2 different texts are too few to learn from" in err


def test_gold_rows_are_learned_from(run, command, tmp_path):
    gold = tmp_path / "gold.csv"
    lines = [f'"{text}",train' for text in SOUP[:8]] + [f'"{text}",Soup' for text in TRAIN[:8]] + [f'"{SOUP[9]}",']
    gold.write_text("\n".join(["text,gold", *lines]) + "\n")
    assert run(*command, "-o", tmp_path / "plain.csv")[0] == 0
    code, _, err = run(*command, "--gold", gold, "-o", tmp_path / "taught.csv")
    assert code == 0
    assert "16 gold labels from" in err
    plain, taught = ([row["predicted"] for row in rows(tmp_path / name)] for name in ("plain.csv", "taught.csv"))
    # Rows that were labelled by hand are not among the uncertain ones, and those that keep another label are named.
    least = err[err.index("least certain:") :].splitlines()[1:6]
    assert not [line for line in least for text in (*SOUP[:8], *TRAIN[:8]) if text[:40] in line]
    # With every row labelled, nothing is left to be uncertain of; and a table has no column to name.
    gold.write_text("\n".join(["text,gold", *(f'"{text}",train' for text in SOUP + TRAIN[:-1]), f'"{TRAIN[-1]}",soup']))
    code, _, err = run(*command, "--gold", gold)
    assert code == 0
    assert "least certain" not in err
    assert "of 30 rows that you labelled, 1 got another label: 29 (" in err
    # What was taught is the opposite of what the words say.
    assert plain != taught
    assert taught[:8] == ["train"] * 8


def said_of_gold(err):
    """The lines of a summary that gold labels change: what is least certain, and who got another label."""
    lines = err.splitlines()
    named = [line for line in lines if "that you labelled" in line]
    return lines[lines.index("least certain:") + 1 :][:5], named


def test_a_resumed_run_says_of_gold_rows_what_the_first_one_did(run, command, tickets, tmp_path):
    # Half of them contradict the others: not all get the label that they were given.
    gold = [f'"{text}",{("soup", "train")[n % 2]}' for n, text in enumerate((SOUP + TRAIN)[:24])]
    (tmp_path / "gold.csv").write_text("\n".join(["text,gold", *gold]) + "\n")
    half = tmp_path / "half.csv"
    half.write_text("".join(tickets.read_text().splitlines(keepends=True)[:15]))
    command += ["--gold", tmp_path / "gold.csv", "--fit", tickets]
    first = run(*command, "-o", tmp_path / "at_once.csv")[2]
    again = run(*command, "-o", tmp_path / "at_once.csv")[2]
    command[2] = half
    assert run(*command, "-o", tmp_path / "in_two.csv")[0] == 0
    command[2] = tickets
    resumed = run(*command, "-o", tmp_path / "in_two.csv")[2]
    assert "14 rows were labelled before and 16 now" in resumed
    assert said_of_gold(again) == said_of_gold(first)
    assert said_of_gold(resumed)[1] == said_of_gold(first)[1] != []
    assert "of 24 rows that you labelled" in said_of_gold(resumed)[1][0]


def test_a_gold_file_that_is_moved_while_rows_are_labelled_is_not_missed(run, command, tmp_path, monkeypatch):
    gold, fit = tmp_path / "gold.csv", ZICLClassifier.fit
    gold.write_text(f'text,gold\n"{SOUP[0]}",soup\n')

    def fit_and_move(*arguments, **settings):
        gold.rename(tmp_path / "moved.csv")
        return fit(*arguments, **settings)

    monkeypatch.setattr(ZICLClassifier, "fit", fit_and_move)
    code, _, err = run(*command, "--gold", gold, "-o", tmp_path / "out.csv")
    assert code == 0, err
    assert "label frequencies" in err


def test_rows_without_a_text_are_left_out_of_gold_and_fit_files(run, command, tickets, tmp_path):
    lines = [f'"{text}",soup' for text in SOUP[:4]] + [f'"{text}",train' for text in TRAIN[:4]]
    (tmp_path / "gold.csv").write_text("\n".join(["text,gold", *lines, '" ",']) + "\n")
    tickets.write_text(tickets.read_text() + "99, \n")
    taught = ["--skip-empty", "--gold", tmp_path / "gold.csv", "--fit", tickets]
    code, _, err = run(*command, *taught, "-o", tmp_path / "out.csv")
    assert code == 0, err
    assert "8 gold labels from" in err
    assert f"without a text, and left out: 1 of 31 rows of {tickets}" in err
    (tmp_path / "gold.csv").write_text("\n".join(["text,gold", *lines, " ,soup"]) + "\n")
    code, _, err = run(*command, *taught, "-o", tmp_path / "other.csv")
    assert code == 2
    assert "has a label and no text" in err


def test_texts_that_the_encoder_cuts_are_counted(run, command, tickets):
    tickets.write_text(tickets.read_text() + f"99,{'The soup was cold. ' * 500}\n")
    code, _, err = run(*command)
    assert code == 0, err
    assert "1 text was cut at the token limit" in err


def test_the_sheet_of_zicl_check_is_gold(run, command, tmp_path):
    assert run(*command, "-o", tmp_path / "out.csv")[0] == 0
    assert run("check", "sample", tmp_path / "out.csv", "-o", tmp_path / "sheet.csv", "--rows", 10)[0] == 0
    sheet = rows(tmp_path / "sheet.csv")
    with (tmp_path / "sheet.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, sheet[0].keys())
        writer.writeheader()
        writer.writerows({**row, "gold": "soup" if "soup" in row["text"] else "train"} for row in sheet)
    code, _, err = run(*command, "--gold", tmp_path / "sheet.csv", "-o", tmp_path / "taught.csv")
    assert code == 0
    assert f"{len(sheet)} gold labels" in err


def test_tasks_of_label_studio_are_checked_and_are_gold(run, command, tmp_path):
    assert run(*command, "-o", tmp_path / "out.csv")[0] == 0
    sample = ["check", "sample", tmp_path / "out.csv", "-o", tmp_path / "tasks.json", "--rows", 10]
    code, _, err = run(*sample)
    assert (code, "--format label-studio" in err) == (2, True)
    for wrong in (["--format", "xml"], ["--blind"]):
        code, _, err = run(*sample[:-2], *wrong)
        assert code == 2
        assert wrong[0] in err
    code, _, err = run(*sample, "--format", "label-studio")
    assert code == 0
    assert "sways who labels" in err
    code, _, err = run(*sample, "--format", "label-studio", "--blind", "--overwrite")
    assert code == 0
    assert "is not in the tasks" in err
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    for task in tasks:
        value = {"choices": ["soup" if "soup" in task["data"]["text"] else "train"]}
        task["annotations"] = [{"result": [{"from_name": "gold", "type": "choices", "value": value}]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    code, out, err = run("check", "score", tmp_path / "export.json", "--sheet", tmp_path / "tasks.json")
    assert code == 0, err
    assert f"from {len(tasks)} labelled rows that stand for 30" in out
    code, _, err = run("check", "score", tmp_path / "export.json")
    assert (code, "--sheet" in err) == (1, True)
    code, _, err = run(*command, "--gold", tmp_path / "export.json", "-o", tmp_path / "taught.csv")
    assert code == 0, err
    assert f"{len(tasks)} gold labels" in err


def test_the_language_model_is_asked_within_a_budget(run, command, lm_folder, tmp_path):
    asking = [*command, "--lm", lm_folder, "--lm-rows", 5]
    code, _, err = run(*asking, "-o", tmp_path / "out.csv")
    assert code == 0
    assert "the language model was asked about 5 texts" in err
    timed = [*command, "--lm", lm_folder, "--budget", "1s", "-o", tmp_path / "timed.csv"]
    assert run(*timed)[0] == 0
    before = (tmp_path / "timed.csv").read_bytes()
    # The budget became a number of texts, which is kept: the output is the same.
    assert run(*timed)[0] == 0
    assert (tmp_path / "timed.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--shares", "soup=0.9,train=0.3"], "add up to 1.2"),
        (["--shares", "soup=0.9,boat=0.1"], "the shares name boat, soup"),
        (["--shares", "soup"], "expected LABEL=NUMBER"),
        (["--budget", "5 minutes"], "expected a number and s, m or h"),
        (["--budget", "5m", "--lm-rows", "3"], "both given"),
        (["--inference", "direct"], "asks no language model, and --inference was given"),
        (["--experts", "encoder,cosine"], "two ways to ask the same encoder"),
        (["--experts", "boat"], "boat"),
        (["--method", "z-icl", "--gold", "GOLD"], "learn from no labels"),
        (["--gold", "GOLD"], "has no column 'gold'"),
    ],
)
def test_wrong_options_are_named_before_anything_is_learned(run, command, tickets, given, message):
    code, _, err = run(*command, *[tickets if value == "GOLD" else value for value in given])
    assert code == 2
    assert message in err


def test_durations():
    assert parse_duration("1.5h") == 5400
    for wrong in ("", "5", "m", "-5m", "0s"):
        with pytest.raises(UsageError):
            parse_duration(wrong)


def test_labels_with_synonyms_of_the_paper_are_resumed(run, command, tmp_path):
    given = [*command, "--labels", "negative,positive", "-o", tmp_path / "out.csv"]
    for said in ("30 rows to label", "nothing was left to do"):
        code, _, err = run(*given)
        assert code == 0, err
        assert said in err
