"""Texts and pairs are checked, with errors that name the row."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from zicl.config import Decision
from zicl.exceptions import LabelError, TextError
from zicl.inputs.pair import Pair
from zicl.inputs.texts import check_texts
from zicl.prompt.labels import Labels
from zicl.score.gold import read_labels_of_texts

PAIRS = [("The soup was cold.", "Nobody ate it."), ("She sang.", "The room was silent.")]


def test_tuples_are_pairs():
    assert check_texts(PAIRS) == [Pair(*pair) for pair in PAIRS]
    assert check_texts(check_texts(PAIRS)) == check_texts(PAIRS)
    with pytest.raises(TextError, match="row 0 holds 3 texts"):
        check_texts([("a", "b", "c")])
    with pytest.raises(TextError, match="second text, is empty"):
        check_texts([("a", " ")])


TEXTS = ["One lamp.", "Two lamps."]


def columns(texts):
    """The texts as a column of every library."""
    return {
        "pandas": pd.Series(texts, dtype=object),
        "pandas, string": pd.Series(texts, dtype="string"),
        "pandas, arrow": pd.Series(texts, dtype="string[pyarrow]"),
        "polars": pl.Series(texts),
        "arrow": pa.array(texts),
        "arrow, chunks": pa.chunked_array([texts[:1], texts[1:]]),
        "arrow, dictionary": pa.array(texts).dictionary_encode(),
        "data set": datasets.Dataset.from_dict({"text": texts})["text"],
        "numpy": np.array(texts, dtype=object),
        "iterator": iter(texts),
    }


@pytest.mark.parametrize("name", [*columns(TEXTS), "numpy, str", "pandas, category", "polars, category"])
def test_columns_of_every_library_are_texts(name):
    given = columns(TEXTS) | {
        "numpy, str": np.array(TEXTS),
        "pandas, category": pd.Series(TEXTS, dtype="category"),
        "polars, category": pl.Series(TEXTS, dtype=pl.Categorical),
    }
    found = check_texts(given[name])
    assert found == TEXTS
    assert {type(text) for text in found} == {str}


@pytest.mark.parametrize("name", list(columns(TEXTS)))
def test_a_missing_text_is_named_by_its_row(name):
    with pytest.raises(TextError, match=r"row 1 holds .*(None|nan|NA)"):
        check_texts(columns(["One lamp.", None, "Two lamps."])[name])


@pytest.mark.parametrize("missing", [np.nan, pd.NA, pd.NaT])
def test_other_missing_values_are_named_by_their_row(missing):
    with pytest.raises(TextError, match="row 1 holds"):
        check_texts(pd.Series(["One lamp.", missing], dtype=object))


DATA_SET = datasets.Dataset.from_dict({"text": TEXTS})


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"text": TEXTS}),
        pl.DataFrame({"text": TEXTS}),
        pl.LazyFrame({"text": TEXTS}),
        pa.table({"text": TEXTS}),
        pa.RecordBatch.from_pydict({"text": TEXTS}),
        DATA_SET,
        DATA_SET.to_iterable_dataset(),
        datasets.DatasetDict({"train": DATA_SET}),
        {"text": TEXTS},
    ],
    ids=lambda table: f"{type(table).__module__.split('.')[0]} {type(table).__name__}",
)
def test_a_table_needs_the_name_of_a_column(table):
    with pytest.raises(TextError, match="a table was given where a column of texts was expected") as error:
        check_texts(table)
    assert error.value.hint == 'name the column: df["text"]'
    decision = Decision()
    with pytest.raises(LabelError, match="y is a table"):
        read_labels_of_texts(TEXTS, table, Labels.of(["a", "b"]), decision)


@pytest.mark.parametrize("name", [*columns(["a", "b"]), "NaT"])
def test_labels_are_columns_with_gaps(name):
    given = columns(["a", None, "b"]) | {"NaT": pd.Series(["a", pd.NaT, "b"], dtype=object)}
    found = read_labels_of_texts(["One.", "Two.", "Three."], given[name], Labels.of(["a", "b"]), Decision())
    assert found == {"One.": ("a",), "Three.": ("b",)}


@pytest.mark.parametrize(
    "y",
    [
        pl.Series([["a", "b"], None, []]),
        pa.array([["a", "b"], None, []]),
        pd.Series(["a|b", None, "-"], dtype=object),
        pl.DataFrame({"a": [1, -1, 0], "b": [1, -1, 0]}),
        pd.DataFrame({"a": [1, -1, 0], "b": [1, -1, 0]}),
    ],
    ids=["polars", "arrow", "pandas", "polars frame", "pandas frame"],
)
def test_several_labels_come_as_columns_of_lists_or_as_indicators(y):
    found = read_labels_of_texts(["One.", "Two.", "Three."], y, Labels.of(["a", "b"]), Decision(multi=True))
    assert found == {"One.": ("a", "b"), "Three.": ()}
