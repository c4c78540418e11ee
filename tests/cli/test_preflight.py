"""What is wrong is said before anything slow is loaded, and an old option's error names its successor."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import LABELS
from zicl.cli.help import check_renamed
from zicl.cli.preflight import CHECKS, preflight
from zicl.exceptions import UsageError
from zicl.inputs.excel import write_workbook
from zicl.persistence import FORMAT, write_folder


@pytest.fixture
def no_models(monkeypatch):
    def loaded(*_, **__):
        pytest.fail("a model was loaded")

    monkeypatch.setattr("zicl.lm.load.load_lm", loaded)
    # Those that import it first: a module that is imported now would keep what stands in for it here.
    for module in ("retrieve.index", "lm.model_cache", "retrieve.encoder"):
        monkeypatch.setattr(f"zicl.{module}.load_encoder", loaded)


def test_a_corpus_without_an_index(run, jsonl, tmp_path, no_models):
    assert run("corpus", "build", "-o", tmp_path / "c.zicl", jsonl, "--index", "none")[0] == 0
    for command in (["classify", "a text"], ["explain", "a text"], ["suggest", "-f", jsonl], ["serve"]):
        code, _, err = run(*command, "--corpus", tmp_path / "c.zicl", "--labels", LABELS)
        assert code == 1, err
        assert "has text but no index" in err
        assert f"zicl index build {tmp_path / 'c.zicl'}" in err
    code, _, err = run("evaluate", "--corpus", tmp_path / "c.zicl", "-o", tmp_path / "results")
    assert (code, (tmp_path / "results").exists()) == (1, False)
    assert "has text but no index" in err


@pytest.mark.parametrize(
    ("given", "exit_code", "message"),
    [
        (["-o", "labelled.xls"], 2, "results are written as .csv, .jsonl, .xlsx or .parquet"),
        (["--with", "nothing.zicl-clf"], 2, "is not a saved classifier"),
        (["--method", ""], 2, "--method is empty"),
        (["--encoder", ""], 2, "--encoder is empty"),
        (["--lm", "smolm2-135m"], 2, "did you mean 'smollm2-135m'?"),
        (["--lm", "gguf:nothing.gguf"], 1, "there is no file"),
        (["--lm", "nothing.gguf"], 1, "there is no file"),
        (["--lm", "no/such/folder"], 2, "unknown language model"),
        (["--encoder", "bge-smal-en-v1.5"], 2, "did you mean 'bge-small-en-v1.5'?"),
        (["--encoder", "nope"], 2, "OWNER/NAME of the model hub"),
        (["--encoder", "smollm2-135m"], 1, "is no encoder"),
        (["--fit", "nothing.csv", "--calibrate", "batch"], 2, "there is no file nothing.csv"),
        (["--save", "taken"], 1, "it is a folder, and a saved classifier was expected"),
    ],
)
def test_what_cannot_work(run, tmp_path, monkeypatch, no_models, given, exit_code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("mine")
    labels = [] if "--with" in given else ["--labels", LABELS]
    code, _, err = run("classify", "a text", *labels, *given)
    assert code == exit_code, err
    assert message in err
    assert (tmp_path / "taken" / "letter.txt").read_text() == "mine"


@pytest.mark.parametrize("command", ["classify", "explain", "prompt"])
def test_half_of_a_character_in_a_text_or_a_label(run, no_models, command):
    # As the system gives bytes that are not UTF-8.
    for text, labels in (("a\udcff", LABELS), ("a text", "\udcff,great")):
        code, _, err = run(command, text, "--labels", labels)
        assert code == 2, err
        assert "broken character" in err


def test_a_file_that_is_not_there_or_cannot_be_read(run, tmp_path, no_models):
    (tmp_path / "photo.png").write_bytes(b"")
    for name, message in (("nothing.csv", "there is no file"), ("photo.png", "a file of this kind cannot be read")):
        code, _, err = run("classify", "-f", tmp_path / name, "--labels", LABELS)
        assert code == 2
        assert message in err


def test_an_output_that_leads_nowhere(run, jsonl, tmp_path, monkeypatch, no_models):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labelled.csv").write_text("id,text,predicted,margin\n1,A bold film.,great,0.5\n")
    write_folder(Path("saved"), {"format": FORMAT, "kind": "distilled"}, "")
    outputs = (
        (["classify", "-f", jsonl, "--labels", LABELS, "-o"], ".csv"),
        (["classify", "-f", jsonl, "--labels", LABELS, "-o"], ".xlsx"),
        (["classify", "-f", jsonl, "--labels", LABELS, "--save"], ".zicl-clf"),
        (["map", "labelled.csv", "-o"], ".html"),
        (["check", "sample", "labelled.csv", "-o"], ".csv"),
        (["distill", "-f", jsonl, "--labels", LABELS, "-o"], ".zicl-clf"),
        (["export", "saved", "--overwrite", "-o"], ""),
        (["labels", "suggest", LABELS, "-o"], ".toml"),
        (["corpus", "build", jsonl, "-o"], ".zicl"),
        (["corpus", "add", "c.zicl", "--domain", f"a={jsonl}", "-o"], ".zicl"),
        (["report", "results", "-o"], ".md"),
        (["report", "results", "--html"], ".html"),
        (["evaluate", "-o"], ""),
        (["merge", "results", "-o"], ""),
        (["study", "order", "-o"], ""),
    )
    for command, suffix in outputs:
        link, circle = tmp_path / f"link{suffix}", tmp_path / f"circle{suffix}"
        for path, target in ((link, "nowhere/x"), (circle, circle.name)):
            path.unlink(missing_ok=True)
            path.symlink_to(target)
        for output, said in (
            (link, "there is no folder"),
            (circle, "its links lead in a circle"),
            ("n" * 300 + suffix, "its name is too long"),
            (f"labelled.csv/x{suffix}", "is a file"),
            ("", "is empty"),
        ):
            if not output and command[0] in ("report", "evaluate", "merge", "study"):
                # The folder they are run in.
                continue
            code, _, err = run(*command, output)
            assert code in (1, 2), err
            assert said in err, (command, output)
    code, _, err = run("classify", "-f", jsonl, "--with", "n" * 300)
    assert code == 1
    assert "its name is too long" in err


def test_an_output_that_is_read_from_or_that_zicl_did_not_write(run, tmp_path, no_models):
    rows, notes = tmp_path / "rows.csv", tmp_path / "notes.csv"
    rows.write_text("id,text\n1,A bold film.\n")
    notes.write_text("mine\n")
    for output, more, message in (
        (rows, ["--overwrite"], "is read from, and cannot be written to"),
        (rows, [], "is read from, and cannot be written to"),
        (notes, [], "exists already: it is a file, and one that zicl wrote"),
    ):
        code, _, err = run("classify", "-f", rows, "--labels", LABELS, "-o", output, *more)
        assert code, err
        assert message in err
    assert (rows.read_text(), notes.read_text()) == ("id,text\n1,A bold film.\n", "mine\n")


def test_a_workbook_of_which_a_sheet_is_read_is_not_written_to(run, tmp_path, no_models):
    book = tmp_path / "book.xlsx"
    write_workbook(book, ["id", "text"], [{"id": "1", "text": "A bold film."}])
    before = book.read_bytes()
    for command in (
        ["classify", "-f", f"{book}#zicl", "--labels", LABELS, "-o", book],
        ["check", "sample", f"{book}#zicl", "-o", book],
    ):
        code, _, err = run(*command, "--overwrite")
        assert code == 2, err
        assert "is read from, and cannot be written to" in err
    assert book.read_bytes() == before


def test_an_input_with_columns_of_the_output(run, tmp_path, no_models):
    rows = tmp_path / "rows.csv"
    rows.write_text("id,text,predicted,tone:margin\n1,A bold film.,great,0.5\n")
    for more, named in (
        (["-o", "out.csv"], "predicted"),
        (["--json", "--also", "tone=a,b", "--columns", "margin"], "tone:margin"),
    ):
        code, _, err = run("classify", "-f", rows, "--labels", LABELS, *more)
        assert code == 2, err
        assert f"columns that the output needs: {named}" in err


def test_what_verify_does_not_find_is_named(run, no_models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for given, said in (
        (["nope.toml"], "there is no file nope.toml"),
        (["folder"], "folder is a folder, and a .toml file was expected"),
        (["--methods", "no-demos", "--results", "nope"], "there is no folder of results nope"),
        (["--methods", "no-demos"], "there is no folder of results results"),
    ):
        code, _, err = run("verify", *given)
        assert code in (1, 2)
        assert said in err


def test_what_was_not_given_is_not_checked():
    preflight(**dict.fromkeys(CHECKS))


def test_the_checks_of_names_import_neither_torch_nor_transformers(tmp_path):
    script = (
        "import sys; from zicl.cli.preflight import preflight\n"
        "from zicl.exceptions import ZICLError\n"
        "given = {'corpus': 'x.zicl', 'lm': 'x', 'file': 'x.csv', 'saved': 'x'}\n"
        "for name, value in given.items():\n"
        "    try: preflight(**{name: __import__('pathlib').Path(value) if name == 'saved' else value})\n"
        "    except ZICLError: print(name)\n"
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert found.stdout.split("\n")[:-1] == ["corpus", "lm", "file", "saved", "[]"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "out.xls", "--labels", "a,b"], "results are written as .csv, .jsonl, .xlsx or .parquet"),
        (["--labels", "great"], "at least two are needed"),
        ([], "no labels were given"),
        (["--labels", "a,b", "--columns", "predicted,all", "-o", "out.csv"], "'all' is no kind of column"),
        (["--labels", "a,b", "--top", "3"], "there are 2 labels"),
    ],
)
def test_a_wrong_call_is_found_before_anything_heavy_is_imported(tmp_path, arguments, message):
    script = (
        "import sys; from zicl.cli import main\n"
        "try: main()\n"
        "except SystemExit as ending: print(ending.code)\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'faiss', 'sklearn', 'onnxruntime', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    call = [sys.executable, "-c", script, "classify", "A lamp.", *arguments]
    found = subprocess.run(call, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert message in found.stderr
    assert found.stdout.split("\n")[:-1] == ["2", "[]"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "successor"),
    [
        (["classify", "a text", "--retrieval", "diverse"], "--set retrieval.method=diverse"),
        (["explain", "a text", "--share=8"], "--set retrieval.share=8"),
        (["evaluate", "--dtype", "bfloat16"], "--set scoring.dtype=bfloat16"),
        (["study", "order", "--max-cost"], "--server max_cost=VALUE"),
        (["corpus", "build", "--workers", "4"], "--on ray,workers=4"),
    ],
)
def test_an_option_that_changed_its_name(arguments, successor):
    with pytest.raises(UsageError, match=re.escape(f"is now {successor}")) as error:
        check_renamed(arguments)
    assert "--help" in error.value.hint


def test_options_that_kept_their_names_and_texts_that_look_like_options():
    check_renamed(["retrieve", "a text", "--retrieval", "diverse"])
    check_renamed(["classify", "--", "--share"])


@pytest.mark.parametrize(
    ("labels", "message", "hint"),
    [
        ("labels.tml", "labels.tml is no labels.toml", "did you mean 'labels.toml'?"),
        ("labels.json", "labels.json is no labels.toml", "did you mean 'labels.toml'?"),
        ("lables.toml", "there is no file lables.toml", "did you mean 'labels.toml'?"),
        ("data/labels", "data/labels is no labels.toml", "terrible,great"),
        ("great", "1 label given", "--labels terrible,great"),
        ("folder.csv", "folder.csv is a folder", "--labels terrible,great"),
        ("folder", "folder is a folder", "--labels terrible,great"),
        ("folder.toml", "folder.toml is a folder", "--labels terrible,great"),
    ],
)
def test_a_mistyped_file_of_labels_is_no_label(run, no_models, tmp_path, monkeypatch, labels, message, hint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.toml").write_text('[[label]]\nname = "great"\n')
    (tmp_path / "notes.toml").write_text("")
    for name in ("folder", "folder.csv", "folder.toml"):
        (tmp_path / name).mkdir()
    code, _, err = run("classify", "A bold film.", "--labels", labels)
    assert code == 2
    assert message in err
    assert hint in err
    assert "notes" not in err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--text-column", "revew"], "review"),
        (["--text-column", "review", "--id-column", "Kee"], "key"),
        (["--text-column", "review", "--pair-column", "repli"], "reply"),
        (["--text-column", "nothing like it"], None),
    ],
)
def test_the_nearest_column_is_suggested(run, no_models, tmp_path, given, meant):
    (tmp_path / "in.csv").write_text("key,review,reply\n1,A bold film.,So it is.\n")
    code, _, err = run("classify", "--file", tmp_path / "in.csv", "--labels", LABELS, *given)
    assert code == 2
    assert "there is no column" in err
    assert "there are: key, review, reply" in err
    assert (f"did you mean {meant!r}?" in err) if meant else ("did you mean" not in err)
