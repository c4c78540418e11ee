"""Examples are read and checked, and subsampled so that small samples are the beginning of large ones."""

import json
import sys
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zicl.exceptions import DownloadError, ModelError, TextError
from zicl.lab.evaluate import examples as module
from zicl.lab.evaluate.examples import Example, data_hash, read_examples, read_test, subsample
from zicl.lab.evaluate.tasks import Task, get_task

TASK = get_task("SST2")
ROWS = [
    {"id": "a", "text": "The tram was late again.", "label": "terrible"},
    {"id": "b", "text": "What a fine bowl of plums.", "label": "great"},
]


def write(path, rows=ROWS):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_files_of_every_kind(tmp_path, name):
    path = write(tmp_path / name)
    found = read_examples(TASK, path)
    assert found == [Example(row["id"], row["text"], row["label"]) for row in ROWS]
    assert read_examples(TASK.model_copy(update={"train": path}), split="train") == found
    plain = write(tmp_path / name, [{"text": row["text"], "label": row["label"]} for row in ROWS])
    assert [example.id for example in read_examples(TASK, str(plain))] == ["1", "2"]


def test_columns_and_values_can_be_named(tmp_path):
    task = Task(
        name="Mood",
        labels=["low", "high"],
        text_column="said",
        label_column="score",
        id_column="key",
        values={"0": "low", "1": "high"},
    )
    rows = [{"key": 7, "said": "Oh no.", "score": 0}, {"key": 8, "said": "Oh yes.", "score": 1.0}]
    found = read_examples(task, write(tmp_path / "x.jsonl", rows))
    assert found == [Example("7", "Oh no.", "low"), Example("8", "Oh yes.", "high")]
    with pytest.raises(TextError, match="row 1: there is no column 'key'"):
        read_examples(task, write(tmp_path / "x.jsonl", [{"said": "Oh no.", "score": 0}]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "fine"}, "row 2: the label 'fine' is not one of the task's"),
        ({"label": None}, "row 2: the label None"),
        ({"text": " "}, "row 2, column 'text', is empty"),
        ({"text": 5}, "row 2, column 'text', holds int"),
        ({"id": "a"}, "row 2: the id 'a' occurs twice"),
    ],
)
def test_bad_rows_are_named(tmp_path, change, message):
    with pytest.raises(TextError, match=f"x.jsonl, {message}"):
        read_examples(TASK, write(tmp_path / "x.jsonl", [ROWS[0], {**ROWS[1], **change}]))


def test_bad_files_are_named(tmp_path):
    for missing in ("text", "label"):
        rows = [{k: v for k, v in row.items() if k != missing} for row in ROWS]
        with pytest.raises(TextError, match=f"x.csv, row 1 below the header: there is no column '{missing}'"):
            read_examples(TASK, write(tmp_path / "x.csv", rows))
    with pytest.raises(TextError, match="there is no file"):
        read_examples(TASK, tmp_path / "none.csv")
    with pytest.raises(TextError, match="holds no labels"):
        read_examples(TASK, write(tmp_path / "x.txt"))
    with pytest.raises(TextError, match="holds no rows"):
        read_examples(TASK, write(tmp_path / "x.jsonl", []))
    with pytest.raises(TextError, match="expected an object"):
        read_examples(TASK, write(tmp_path / "x.jsonl", [[1]]))
    for split, said, hint in (("test", "test", "--data A=FILE"), ("train", "training", "--train A=FILE")):
        with pytest.raises(TextError, match=f"the task A names no {said} examples") as error:
            read_examples(Task(name="A", labels=["x", "y"]), split=split)
        assert hint in error.value.hint


def test_the_hub(monkeypatch):
    asked = []

    class DatasetsError(Exception):
        """What the library raises where the hub has no such data set: neither an OSError nor a ValueError."""

    exceptions = types.SimpleNamespace(DatasetsError=DatasetsError)

    def load_dataset(name, config, split):
        asked.append((name, config, split))
        if split == "train":
            raise DatasetsError("no way there")
        return [{"text": f"Tweet number {n}.", "label": n % 3} for n in range(9)]

    library = types.SimpleNamespace(load_dataset=load_dataset, exceptions=exceptions)
    monkeypatch.setitem(sys.modules, "datasets", library)
    found = read_examples(get_task("Tweet"))
    assert asked == [("cardiffnlp/tweet_eval", "sentiment", "validation")]
    assert found[1] == Example("2", "Tweet number 1.", "neutral")
    monkeypatch.setattr(module, "_MOST", 4)
    few = read_examples(get_task("Tweet"), "hub")
    assert len(few) == 4
    assert set(few) < set(found)
    with pytest.raises(DownloadError, match="no way there"):
        read_examples(get_task("Tweet"), split="train")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModelError, match="needs an extra"):
        read_examples(get_task("Tweet"))


def test_large_test_sets_are_subsampled(tmp_path):
    rows = [{"id": n, "text": f"Page {n}.", "label": TASK.labels.names[n % 2]} for n in range(30)]
    path = write(tmp_path / "x.jsonl", rows)
    everything = read_examples(TASK, path)
    assert read_test(TASK, path) == everything
    small = TASK.model_copy(update={"sample": 10})
    assert read_test(small, path) == subsample(everything, 10, 100)
    assert read_test(small, path) != read_test(small.model_copy(update={"sample_seed": 13}), path)


sets = st.lists(st.sampled_from("abcde"), min_size=1, max_size=80).map(
    lambda labels: [Example(str(n), f"text {n}", label) for n, label in enumerate(labels)]
)


@given(sets, st.integers(0, 90), st.integers(0, 90), st.integers(0, 3), st.randoms(use_true_random=False))
def test_subsamples_are_nested_and_do_not_depend_on_the_order(examples, n, m, seed, random):
    small, large = sorted((n, m))
    chosen = subsample(examples, large, seed)
    assert subsample(examples, small, seed) == chosen[:small]
    assert len(set(chosen)) == len(chosen) == min(large, len(examples))
    shuffled = random.sample(examples, len(examples))
    assert subsample(shuffled, large, seed) == chosen
    assert data_hash(shuffled) == data_hash(examples)


@given(sets, st.integers(0, 90))
def test_subsamples_keep_the_shares(examples, n):
    n = min(n, len(examples))
    chosen = [example.label for example in subsample(examples, n, seed=1)]
    labels = [example.label for example in examples]
    kinds = len(set(labels))
    for label in set(labels):
        share = labels.count(label) / len(labels)
        # Every label is rounded to its share of one common quota, hence the bound: 1 for up to three labels and for
        # any number of about equal ones; only a label that outweighs many others can be off by more.
        bound = max(1.0, 0.5 + 0.5 * share * (kinds - 2))
        assert abs(chosen.count(label) - n * share) <= bound + 1e-9


def test_the_data_hash_sees_every_part():
    one = [Example("1", "text", "a"), Example("2", "more", "b")]
    others = [
        [Example("1", "text", "b"), one[1]],
        [Example("1", "texts", "a"), one[1]],
        [Example("3", "text", "a"), one[1]],
        one[:1],
    ]
    assert len({data_hash(one), *map(data_hash, others)}) == 5
