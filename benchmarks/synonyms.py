"""Judge the synonyms that are suggested for the label sets of synonyms.toml, by the lists written there by hand.

    python benchmarks/synonyms.py

For each half of the sets: how many labels get a good first suggestion, one of the words listed as bad, another word, or
none; and the share of good words among all suggestions.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

from zicl.lm.load import load_lm
from zicl.prompt.labels import Labels
from zicl.prompt.synonyms import suggest_synonyms
from zicl.retrieve.encoder import load_encoder

SETS = Path(__file__).with_suffix(".toml")
ENCODER, LM = "bge-small-en-v1.5", "smollm2-135m"


def main() -> None:
    """Print each label with its judged suggestions, and the totals of each half."""
    encoder, lm = load_encoder(ENCODER, offline=True), load_lm(LM, offline=True)
    firsts: dict[str, Counter[str]] = {"choose": Counter(), "confirm": Counter()}
    every: dict[str, Counter[str]] = {"choose": Counter(), "confirm": Counter()}
    for name, table in tomllib.loads(SETS.read_text(encoding="utf-8")).items():
        use = table.pop("use")
        found = suggest_synonyms(Labels.of(list(table)), encoder, lm, offline=True)
        for label, lists in table.items():
            judged = [(option.word, _judge(option.word, lists)) for option in found[label]]
            firsts[use][judged[0][1] if judged else "none"] += 1
            every[use].update(verdict for _, verdict in judged)
            words = ", ".join(f"{word} ({verdict})" for word, verdict in judged)
            print(f"{use:<8} {name:<9} {label:<14} {words or 'none'}")
    for use, counts in firsts.items():
        total, suggested = sum(counts.values()), sum(every[use].values())
        shares = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("good", "bad", "other", "none"))
        print(f"{use}: of {total} labels, first suggestion: {shares}; {every[use]['good']} of {suggested} are good")


def _judge(word: str, lists: dict[str, list[str]]) -> str:
    return "good" if word in lists["good"] else "bad" if word in lists["bad"] else "other"


if __name__ == "__main__":
    main()
