"""Sets of other kinds, made from the data at hand, for kinds.toml and choice.toml.

    python benchmarks/kinds.py --data DATA           # build/RTE.jsonl and build/next_sentence.jsonl

RTE: one row a premise, so that rows are independent and an interval over them means what it says. Next sentence: which
of four comes after this one? The wrong ones are what comes next elsewhere in other film reviews, a domain that is held
back from the corpus the demonstrations are taken from.
"""

from __future__ import annotations

import argparse
import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from zicl._util.files import atomic_write
from zicl._util.random import rng
from zicl.corpus.splitter import get_splitter

OPTIONS, SHORTEST, LONGEST = 4, 5, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("-o", "--output", type=Path, default=Path("build"), help="a folder")
    parser.add_argument("--rows", type=int, default=400, help="rows of the multiple-choice set")
    parser.add_argument("--seed", type=int, default=100)
    options = parser.parse_args()
    rte = [json.loads(line) for line in (options.data / "eval/RTE/test.jsonl").read_text("utf-8").splitlines()]
    write(options.output / "RTE.jsonl", one_a_premise(rte))
    with gzip.open(options.data / "corpora/imdb_reviews.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in stream]
    write(options.output / "next_sentence.jsonl", next_sentence(texts, options.rows, options.seed))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} rows in {path}")


def one_a_premise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first row of each premise."""
    return list({row["text"]: row for row in reversed(rows)}.values())[::-1]


def next_sentence(texts: list[str], count: int, seed: int) -> list[dict[str, Any]]:
    """Rows of a sentence, four that might come next, and the number of the one that does."""
    split = get_splitter("sentencex")
    order = rng(seed, "next sentence", "documents").permutation(len(texts)).tolist()
    pairs: list[tuple[int, tuple[str, str]]] = []
    for document in order:
        if len(pairs) < count and (pair := ordinary(split(texts[document]))):
            pairs.append((document, pair))
    rows = []
    for document, (sentence, true) in pairs:
        generator = rng(seed, str(document), "options")
        others = [pair[1] for other, pair in pairs if other != document and pair[1] != true]
        wrong = [others[int(n)] for n in generator.choice(len(others), OPTIONS - 1, replace=False)]
        place = int(generator.integers(OPTIONS))
        choices = [*wrong[:place], true, *wrong[place:]]
        rows.append({"id": str(document), "text": sentence, "choices": choices, "label": str(place + 1)})
    return rows


def ordinary(sentences: list[str]) -> tuple[str, str] | None:
    """The first two neighbours of ordinary length after the opening of a document."""
    for one, two in pairwise(sentences[1:]):
        if all(SHORTEST <= len(each.split()) <= LONGEST for each in (one, two)):
            return one, two
    return None


if __name__ == "__main__":
    main()
