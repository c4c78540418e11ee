"""What is printed for people: no control characters of data; progress in a log in few lines."""

import csv
import io
import json
import subprocess
import sys

import pytest

from zicl._util.printable import printable
from zicl.cli import main
from zicl.cli.console import (
    people_console,
    print_json,
    print_json_lines,
    print_line,
    print_status,
    progress_bars,
    progress_lines,
)

EVIL = "x\x1b]0;owned\x07\x1b[2Jy\r\x9b31m\u202e\x7f"
SHOWN = r"x\x1b]0;owned\x07\x1b[2Jy\r\x9b31m\u202e\x7f"


def has_controls(text):
    return any(not (each.isprintable() or each in "\n\t") for each in text)


def test_control_characters_become_escapes_and_everything_else_stays():
    assert printable(EVIL) == SHOWN
    assert printable(printable(EVIL)) == SHOWN
    plain = "Ein Gruß, 冬の港 — a\ttab\nand a line [bold]x[/bold] 👩\u200d💻"
    assert printable(plain) == plain
    assert printable("a\udcff.csv") == r"a\udcff.csv"


def test_every_way_to_print_escapes(capsys, monkeypatch):
    from rich.table import Table
    from rich.text import Text

    monkeypatch.setenv("COLUMNS", "200")
    print_status(EVIL)
    print_line(EVIL)
    table = Table(EVIL, "b")
    table.add_row(Text(EVIL), EVIL)
    people_console().print(table)
    # A name is no markup: this one would be an error.
    people_console().print("[/red]")
    printed = capsys.readouterr()
    assert not has_controls(printed.out + printed.err)
    assert printed.err == SHOWN + "\n"
    assert printed.out.count(r"x\x1b]0;owned") == 4
    assert "[/red]" in printed.out


def test_a_run_escapes_the_names_of_labels_and_files_and_its_json_is_faithful(tmp_path, run, encoder_folder):
    label, text = "a\x1b[2Jb", "A \x1b[31mred lamp."
    (tmp_path / "labels.toml").write_text(
        '[[label]]\nname = "a\\u001b[2Jb"\nwords = "bad"\n[[label]]\nname = "great"\n'
    )
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": f"{text} {n}"}) + "\n" for n in range(24)))
    options = ["--labels", tmp_path / "labels.toml", "--encoder", encoder_folder, "--method", "encoder", "--offline"]
    code, out, err = run("classify", "--file", tmp_path / "t.jsonl", *options)
    assert code == 0, err
    assert not has_controls(out + err)
    assert r"a\x1b[2Jb" in out + err
    _, out, err = run("classify", "--file", tmp_path / "t.jsonl", "--json", *options)
    assert f"p:{label}" in json.loads(out.splitlines()[0])
    assert json.loads(out.splitlines()[0])["text"] == f"{text} 0"
    code, _, err = run("classify", "--file", tmp_path / "no\x1b[2J.csv", *options)
    assert code == 2
    assert r"no\x1b[2J.csv" in err
    assert not has_controls(err)


def test_a_text_or_an_id_of_two_lines_is_shown_as_one(tmp_path, run, encoder_folder):
    rows = [{"id": f"{n}\nzicl: forged", "text": f"Lamp {n}.\nzicl: forged\r\n\nagain"} for n in range(24)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--labels", "a,b", "--encoder", encoder_folder, "--method", "encoder", "--offline"]
    code, out, err = run("classify", "--file", tmp_path / "t.jsonl", *options)
    assert code == 0, err
    assert "zicl: forged" in out + err
    assert not [line for line in (out + err).splitlines() if line.startswith("zicl: forged")]


def test_a_line_where_a_stage_begins_and_one_a_minute():
    said, now = [], [0.0]
    report = progress_lines(said.append, lambda: now[0])
    for second in range(0, 301, 10):
        now[0] = float(second)
        report("embedding", 100 + second, 400, note="shard 2")
    report("checking", 0)
    assert said[0] == "embedding shard 2"
    assert said[1] == "embedding shard 2: 40%, about 4 minutes left"
    assert said[-1] == "checking"
    assert len(said) == 7


def test_a_terminal_names_stages_and_counts_texts(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    with progress_bars() as report:
        report("loading the encoder", 0, None)
        report("encoding the texts", 512, 1000)
        report("reading", 50_000, 200_000)
    said = capsys.readouterr().err
    assert "loading the encoder" in said
    assert "512 of 1,000" in said
    assert "25%" in said
    assert "50,000" not in said


def test_what_an_earlier_run_did_is_not_counted_for_the_time_left():
    said, now = [], [0.0]
    report = progress_lines(said.append, lambda: now[0])
    for second in range(0, 121, 10):
        now[0] = float(second)
        report("embedding", 900 + second / 2, 1000)
    # 60 of the last 100 took two minutes.
    assert said[-1] == "embedding: 96%, about 80 seconds left"


def test_where_nothing_moves_or_nobody_knows_the_end_nothing_is_claimed():
    said, now = [], [0.0]
    report = progress_lines(said.append, lambda: now[0])
    for second in range(0, 600, 30):
        now[0] = float(second)
        report("loading", 0, 1)
        report("waiting", second)
    assert said == ["loading", "waiting"]


@pytest.fixture
def sheet(tmp_path, run):
    """A sheet that was drawn and filled in; its labels and texts are not ASCII."""
    texts = [["id", "text", "predicted", "margin", "p:größer", "p:冬"]]
    texts += [[n, f"Ein Gruß, Nr. {n}: 冬の港 👩‍💻", ("größer", "冬")[n % 2], 0.5, 0.5, 0.5] for n in range(20)]
    with (tmp_path / "labelled.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(texts)
    code, _, err = run("check", "sample", tmp_path / "labelled.csv", "-o", tmp_path / "sheet.csv")
    assert code == 0, err
    rows = list(csv.reader((tmp_path / "sheet.csv").read_text("utf-8-sig").splitlines()))
    with (tmp_path / "sheet.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([rows[0], *([*row[:-1], "冬"] for row in rows[1:])])
    return tmp_path / "sheet.csv"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_a_standard_output_of_any_encoding_gets_everything(sheet, monkeypatch, encoding):
    def printed(*arguments):
        monkeypatch.setattr(sys, "argv", ["zicl", "check", "score", str(sheet), *arguments])
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ending:
            main()
        stream.flush()
        assert not ending.value.code
        return stream.buffer.getvalue()

    monkeypatch.setenv("COLUMNS", "200")
    table = printed().decode(encoding)
    assert "冬" in table or "\\u51ac" in table
    assert "größer" in table or "gr\\xf6\\xdfer" in table
    found = json.loads(printed("--json").decode("utf-8"))
    assert [each["label"] for each in found["labels"]] == ["größer", "冬"]
    assert found["mistakes"][0]["text"].endswith("冬の港 👩‍💻")


def test_json_is_utf8_or_ascii(monkeypatch):
    for encoding, expected in (("utf-8", '{"ö": "冬👩"}\n'), ("latin-1", '{"\\u00f6": "\\u51ac\\ud83d\\udc69"}\n')):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        print_json({"ö": "冬👩"})
        print_json_lines(['{"a": 1}', '{"b": 2}'])
        stream.flush()
        assert stream.buffer.getvalue().decode() == expected + '{"a": 1}\n{"b": 2}\n'


def test_streams_that_are_closed(sheet):
    def run(closing, *arguments):
        command = f'exec "$0" -m zicl "$@" {closing}'
        call = ["/bin/sh", "-c", command, sys.executable, *map(str, arguments)]
        return subprocess.run(call, capture_output=True, text=True, cwd=sheet.parent, check=False)

    found = run("2>&-", "check", "score", sheet, "--json")
    assert found.returncode == 0
    assert json.loads(found.stdout)["labels"][1]["label"] == "冬"
    found = run("<&-", "classify", "-", "--labels", "a,b")
    assert found.returncode == 2
    assert "holds no rows" in found.stderr
    assert "Traceback" not in found.stderr
    assert run(">&-", "check", "score", sheet).returncode == 0


def test_no_columns_are_eighty(monkeypatch, capsys):
    for columns in ("0", "00"):
        monkeypatch.setenv("COLUMNS", columns)
        assert people_console().width == 80
        print_status("a line")
        assert capsys.readouterr().err == "a line\n"
    monkeypatch.setenv("COLUMNS", "33")
    assert people_console().width == 33
