"""The real models that the set-up fetched: parity on real prompts, synonyms, and the whole demonstration."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from zicl._util.catalog import get_asset
from zicl.apps.demo import reviews
from zicl.exceptions import SynonymError
from zicl.prompt.builder import LabelledText, PromptBuilder
from zicl.prompt.labels import Labels
from zicl.prompt.synonyms import complete_synonyms, random_unigrams, suggest_synonyms
from zicl.prompt.template import get_template
from zicl.prompt.wordnet import candidates, common_part_of_speech

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def encoder():
    from zicl.retrieve.encoder import load_encoder

    return load_encoder(offline=True)


def real_prompts(lm, inference, count):
    """Prompts of real sentences: film-review lines as demonstrations and as inputs."""
    texts = [text for text, _ in reviews("rotten_tomatoes", offline=True)]
    builder = PromptBuilder(lm.tokenizer, get_template("review"), inference, context=lm.context)
    for number in range(count):
        start = 17 * number
        demos = [LabelledText(text, ("good", "bad")[n % 2]) for n, text in enumerate(texts[start : start + 6])]
        yield builder.build(texts[start + 16], demos, ("terrible", "great"))


@pytest.mark.parametrize("inference", ["direct", "channel"])
def test_trees_equal_plain_forwards_with_the_same_winners(real_lm, inference):
    prompts = list(real_prompts(real_lm, inference, 20))
    found = real_lm.score(prompts)
    with torch.inference_mode():
        plain = [real_lm.forward.plain(prompt) for prompt in prompts]
    for mine, theirs in zip(found, plain, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert np.abs(a - b).max() < 1e-4
        assert np.argmax([row.sum() for row in mine]) == np.argmax([row.sum() for row in theirs])


def test_threads_change_a_score_by_less_than_1e_4(real_lm):
    prompts = list(real_prompts(real_lm, "channel", 3))
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(real_lm.score(prompts))
    finally:
        torch.set_num_threads(before)
    for one, two in zip(*results, strict=True):
        for a, b in zip(one, two, strict=True):
            assert np.abs(a - b).max() < 1e-4


def test_smollm2_has_no_bos_and_golden_scores(real_lm):
    assert not real_lm.adds_bos
    builder = PromptBuilder(real_lm.tokenizer, get_template("review"), "direct")
    [rows] = real_lm.score([builder.build("A warm and funny evening at the theatre.", [], ("terrible", "great"))])
    assert [float(row.sum()) for row in rows] == pytest.approx(GOLDEN_SCORES, abs=1e-3)


GOLDEN_SCORES = [-26.6628, -25.3178]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (
            "sports world business technology",
            {"sports": "athletics", "business": "commerce", "technology": "engineering"},
        ),
        ("joy anger sadness fear", {"joy": "delight", "sadness": "sorrow", "fear": "fright"}),
        ("toxic polite", {"toxic": "poisonous", "polite": "courteous"}),
        ("cheap expensive", {"cheap": "affordable", "expensive": "costly"}),
        ("complaint praise question", {"complaint": "grievance", "praise": "congratulations", "question": "inquiry"}),
    ],
)
def test_synonyms_that_make_sense(real_lm, encoder, labels, expected):
    found = suggest_synonyms(Labels.of(labels.split()), encoder, real_lm, offline=True)
    best = {name: options[0].word for name, options in found.items() if options}
    assert expected.items() <= best.items()
    words = {option.word for options in found.values() for option in options}
    assert not words & {"mutant", "emotion", *labels.split()}


def test_phrases_go_by_their_head_word(real_lm, encoder):
    found = suggest_synonyms(Labels.of(["technical issue", "praise"]), encoder, real_lm, offline=True)
    assert found["technical issue"][0].word.startswith("technical ")
    whole = suggest_synonyms(Labels.of(["real estate", "praise"]), encoder, real_lm, offline=True)["real estate"]
    assert not any(option.word.startswith("real ") for option in whole)


def test_labels_are_used_as_one_part_of_speech():
    assert common_part_of_speech(["positive", "negative"], offline=True) == "a"
    assert common_part_of_speech(["sports", "travel", "health"], offline=True) == "n"
    words = {c.word for c in candidates("positive", "a", offline=True)}
    assert "film" not in words
    assert "optimistic" in words
    senses = {c.word: c.sense for c in candidates("praise", "n", offline=True)}
    assert senses["kudos"] > 0.5 > senses["worship"]
    assert "grievance" in {c.word for c in candidates("complaint", "n", offline=True)}


def test_labels_without_a_good_synonym_are_all_named(real_lm, encoder):
    with pytest.raises(SynonymError, match="qwxyz, zyxwq") as error:
        complete_synonyms(Labels.of(["qwxyz", "zyxwq", "sports"]), encoder=lambda: encoder, lm=real_lm, offline=True)
    assert "--synonyms" in error.value.hint
    given = Labels.of({"qwxyz": "one", "zyxwq": "two", "sports": ()})
    assert complete_synonyms(given, encoder=lambda: encoder, lm=real_lm, offline=True)["sports"].synonyms == (
        "athletics",
    )


def test_random_words_are_common_english():
    words = random_unigrams(offline=True)
    assert 1000 < len(words) < 10_000
    assert {"house", "water"} <= set(words)


def test_punkt_by_name():
    from zicl.corpus.splitter import get_splitter

    assert get_splitter("punkt")("Dr. Gray left early. The soup was cold!") == [
        "Dr. Gray left early.",
        "The soup was cold!",
    ]


def test_the_demonstration(tmp_path, monkeypatch):
    """``zicl demo`` as a user runs it, with the models the set-up fetched."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "assets").symlink_to(get_asset("wordnet").folder.parent)
    done = subprocess.run(
        [sys.executable, "-m", "zicl", "demo", "--offline"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ZICL_HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    right = {name.strip(): int(count) for name, count in re.findall(r"│ ([^│]+) │ (\d+) +│ [\d.]+ +│", done.stdout)}
    assert len(right) == 3
    joined, encoder, _ = right.values()
    assert next(iter(right)).startswith("z-icl+, the default")
    # The sentences are drawn by a seed, and the answers do not depend on the machine.
    assert joined > encoder > 60
    assert "zicl classify --file" in done.stderr
