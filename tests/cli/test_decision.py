"""zicl classify with --none, --multi, --top and --also, and zicl check of several labels."""

import csv
import json

import pytest

from tests.score.test_decision import BOTH, FILM, ODD, SOUP, TRAIN
from zicl.retrieve.encoder import SentenceEncoder


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))


@pytest.fixture
def command(tmp_path, encoder_folder):
    def build(texts, labels="soup,train,film"):
        path = tmp_path / "texts.csv"
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([["id", "text"], *enumerate(texts)])
        return ["classify", "--file", path, "--labels", labels, "--encoder", encoder_folder, "--offline"]

    return build


def rows(path):
    with path.open(newline="", encoding="utf-8-sig") as stream:
        return list(csv.DictReader(stream))


def test_none_has_columns_a_curve_and_survives_saving(run, command, tmp_path):
    base = command(SOUP + TRAIN + FILM + ODD)
    out, saved = tmp_path / "out.csv", tmp_path / "c.zicl-clf"
    gold = tmp_path / "gold.csv"
    gold.write_text("text,gold\n" + "\n".join([f'"{SOUP[0]}",soup', f'"{ODD[0]}",other']) + "\n")
    code, _, err = run(*base, "--none", "other", "--gold", gold, "-o", out, "--columns", "all", "--save", saved)
    assert code == 0
    assert "other, by --threshold: " in err
    assert "gold rows that are right" in err
    found = rows(out)
    names = ("soup", "train", "film", "other")
    assert all(sum(float(row[f"p:{name}"]) for name in names) == pytest.approx(1, abs=1e-5) for row in found)
    assert found[0]["term:pile:other"]
    code, text, _ = run("classify", "--with", saved, "--json", "--offline", ODD[0])
    assert json.loads(text)["p:other"] == pytest.approx(float(found[90]["p:other"]), abs=1e-5)
    code, text, _ = run("explain", "--with", saved, "--offline", ODD[0])
    assert "other" in text


def test_several_labels_are_joined_checked_and_learned_from(run, command, tmp_path):
    base, out, sheet = command(SOUP + TRAIN + FILM + BOTH), tmp_path / "out.csv", tmp_path / "sheet.csv"
    code, _, err = run(*base, "--multi", "-o", out)
    assert code == 0, err
    found = rows(out)
    assert "predicted" not in found[0]
    assert "soup" in found[0]["labels"].split("|")
    code, _, err = run("check", "sample", out, "-o", sheet, "--rows", 20)
    assert code == 0, err
    assert "separated by |" in err
    filled = rows(sheet)
    truth = dict.fromkeys(BOTH, "soup|train") | dict.fromkeys(SOUP, "Soup") | dict.fromkeys(TRAIN, "train")
    with sheet.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, filled[0])
        writer.writeheader()
        writer.writerows({**row, "gold": truth.get(row["text"], "-")} for row in filled)
    code, text, _ = run("check", "score", sheet, "--json")
    report = json.loads(text)
    assert code == 0
    assert report["confusion"] == []
    assert {each["label"] for each in report["labels"]} == {"soup", "train", "film"}
    assert 0 <= report["accuracy"]["value"] <= 1
    code, text, _ = run("check", "score", sheet)
    assert "exactly the right labels" in text
    code, _, err = run(*base, "--multi", "--gold", sheet, "-o", tmp_path / "again.csv")
    assert code == 0, err
    assert "gold labels from" in err


def test_the_top_labels_replace_the_columns_of_all(run, command, tmp_path):
    base, out = command(SOUP + TRAIN + FILM), tmp_path / "out.csv"
    code, _, err = run(*base, "--top", 2, "-o", out)
    assert code == 0, err
    first = rows(out)[0]
    assert first["predicted"] == first["label_1"]
    assert float(first["probability_1"]) >= float(first["probability_2"])
    assert not any(name.startswith(("p:", "term:", "label_3")) for name in first)
    code, _, err = run(*base, "--top", 9)
    assert code == 2
    assert "there are 3 labels" in err
    assert "to label" not in err
    code, _, err = run(*base, "--top", 3, "--also", "mood=hot,late", "-o", tmp_path / "two.csv")
    assert code == 0, err
    assert {"label_3", "mood:label_2"} <= set(rows(tmp_path / "two.csv")[0])
    assert "mood:label_3" not in rows(tmp_path / "two.csv")[0]
    code, text, _ = run(*base, "--top", 2)
    assert "likeliest" in text


def test_two_sets_of_labels_share_one_encoding(run, command, tmp_path):
    base, out = command(SOUP + TRAIN + FILM), tmp_path / "out.csv"
    code, _, err = run(*base, "--also", "mood=hot,late", "-o", out)
    assert code == 0, err
    first = rows(out)[0]
    assert first["predicted"] in ("soup", "train", "film")
    assert first["mood:predicted"] in ("hot", "late")
    assert list(first)[-6:] == [
        "predicted",
        "probability",
        "margin",
        "mood:predicted",
        "mood:probability",
        "mood:margin",
    ]
    code, text, _ = run(*base, "--also", "mood=hot,late", "--json")
    record = json.loads(text.splitlines()[0])
    assert record["mood:p:hot"] + record["mood:p:late"] == pytest.approx(1, abs=1e-5)
    before = out.read_bytes()
    code, _, err = run(*base, "--also", "mood=hot,late", "-o", out)
    assert "90 rows are in" in err
    assert out.read_bytes() == before


def test_two_sets_of_labels_share_it_where_one_is_taught(run, command, tmp_path, monkeypatch):
    encoded, encode = list[str](), SentenceEncoder.encode
    monkeypatch.setattr(SentenceEncoder, "encode", lambda self, texts: encoded.extend(texts) or encode(self, texts))
    texts, gold = SOUP + TRAIN + FILM, tmp_path / "gold.csv"
    gold.write_text(f'text,gold\n"{SOUP[3]}",soup\n')
    options = ("--also", "mood=hot,late", "--gold", gold, "--set", "pile.texts=40")
    code, _, err = run(*command(texts), *options, "-o", tmp_path / "out.csv")
    assert code == 0, err
    # Each set learns from a sample of its own, but a row is encoded for both at once.
    assert sum(text in texts for text in encoded) <= 40 + 40 + 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--none", "soup"], "one of the labels"),
        (["--multi", "--threshold", "2"], "from 0 to 1"),
        (["--multi", "--threshold", "soup=high"], "no number"),
        (["--threshold", "0.5"], "neither is set"),
        (["--also", "mood"], "expected NAME=LABELS"),
        (["--also", "mood=3"], "expected NAME=LABELS"),
        (["--also", "p=hot,late"], "begins columns already"),
        (["--also", "mood=hot,late"], "write a file"),
        (["--multi", "--threshold", "soup=0.1,soup=0.2"], "each label once"),
        (["--also", "mood=hot,late", "--save", "x.zicl-clf"], "one set of labels"),
        (["--multi", "--method", "no-demos"], "learned from a pile"),
    ],
)
def test_a_mistake_is_said_before_anything_is_loaded(run, command, options, message):
    code, out, err = run(*command(SOUP), *options)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert "to label" not in err


def test_counted_options_cannot_be_several(run, command):
    code, _, err = run(*command(SOUP, labels="3"), "--multi")
    assert code == 2
    assert "differ from text to text" in err
