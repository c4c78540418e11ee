"""Explain a prediction, in a form that prints well in a terminal and in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zicl.inputs.pair import text_parts
from zicl.prompt.builder import Prompt
from zicl.score.calibration import log_softmax
from zicl.score.ensemble import PILE
from zicl.score.results import Demonstration, LabelScore, Prediction, nearest_first

# How many labels are shown with their nearest words, and how many of these: as on the page.
_SHOWN_LABELS, _SHOWN_WORDS = 12, 3


@dataclass(frozen=True)
class Explanation:
    """Why a text got its label: what each expert said, and the prompt with its demonstrations, if there is one.

    ``nearest`` are the words and descriptions of each label with the cosine of the text to them, the nearest first;
    there are none where no encoder compared them.
    """

    prediction: Prediction
    nearest: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The predicted label."""
        return self.prediction.label

    @property
    def demonstrations(self) -> tuple[Demonstration, ...]:
        """The pseudo-demonstrations, farthest first, as in the prompt."""
        return () if self.prediction.prepared is None else self.prediction.prepared.demos

    @property
    def prompt(self) -> str:
        """The prompt's text for the predicted label; empty where no language model was asked."""
        if self.prediction.prepared is None:
            return ""
        # The last score may be that of none of the labels, which no prompt names.
        values = [score.value for score in self.scores[: len(self.prediction.prepared.labels)]]
        return self.prediction.prepared.prompt.text(int(np.argmax(values)))

    @property
    def scores(self) -> tuple[LabelScore, ...]:
        """The score of every label."""
        return self.prediction.scores

    @property
    def experts(self) -> dict[str, dict[str, float]]:
        """What each expert says by itself, as probabilities by label; empty where only one prompt was scored.

        An expert that gives no score to none of the labels has no probability for it.
        """
        names = [score.label for score in self.scores]
        return {
            term: dict(zip(names, np.exp(log_softmax(np.array(values))).tolist(), strict=False))
            for term, values in self.prediction.terms.items()
        }

    @property
    def verdict(self) -> str:
        """One sentence: what the encoder alone says, what the pile says, and what came of it; empty without a pile."""
        if self.prediction.decision.multi or not {"encoder", PILE} <= self.experts.keys():
            return ""
        alone, pile = (max(said, key=said.__getitem__) for said in (self.experts["encoder"], self.experts[PILE]))
        label = self.label
        if alone == pile == label:
            return f"the encoder and the pile agree on {label}"
        if label == alone:
            outcome = "the encoder's answer stays"
        else:
            outcome = "the pile changes the answer" if label == pile else "together they say another"
        return f"the encoder alone says {alone}, the pile says {pile}: {outcome}, {label}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        text, *second = text_parts(self.prediction.text)
        return {
            "text": text,
            **({"pair": second[0]} if second else {}),
            "label": self.label,
            "labels": list(self.prediction.labels),
            "probabilities": self.prediction.probabilities,
            "scores": {
                s.label: {"log_likelihood": s.log_likelihood, "tokens": s.tokens, "value": s.value} for s in self.scores
            },
            "experts": self.experts,
            "verdict": self.verdict,
            "nearest": {
                name: [{"words": words, "similarity": round(cosine, 4)} for words, cosine in parts]
                for name, parts in self.nearest.items()
            },
            "terms": {name: list(values) for name, values in self.prediction.terms.items()},
            "probes": [list(row) for row in self.prediction.probes],
            "demonstrations": [_demonstration_dict(demo) for demo in self.demonstrations],
            "prompt": None if self.prediction.prepared is None else _prompt_dict(self.prediction.prepared.prompt),
        }

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=100, force_terminal=False, color_system=None)
        with console.capture() as capture:
            console.print(self)
        return capture.get()

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.table import Table
        from rich.text import Text

        yield Text(str(self.prediction.text), style="bold")
        yield self._score_table()
        if self.verdict:
            yield Text(self.verdict)
        if self.nearest:
            yield Text("nearest words of each label, by cosine:", style="dim")
            words = Table.grid(padding=(0, 2))
            for name, near in self._near_words():
                words.add_row(Text(name, style="bold" if name in self.prediction.labels else ""), Text(near))
            yield words
        prepared = self.prediction.prepared
        if prepared is None:
            return
        yield Text(self._notes(prepared.prompt), style="dim")
        if self.demonstrations:
            demos = Table.grid(padding=(0, 2))
            for number, demo in enumerate(nearest_first(self.demonstrations), start=1):
                demos.add_row(
                    Text(f"{number:>2}"),
                    Text(demo.words, style="bold"),
                    Text(str(demo.sentence.text)),
                    style="" if demo.kept else "dim strike",
                )
                demos.add_row("", "", Text(_origin(demo), style="dim"))
            yield demos
        yield Text("the end of the prompt for each label, [scored] part in brackets:", style="dim")
        for branch in prepared.prompt.branches[: len(prepared.labels)]:
            yield Text(f"{(prepared.prompt.stem.text + branch.given.text).strip()}[{branch.scored.text}]")

    def _near_words(self) -> Iterator[tuple[str, str]]:
        """Yield the nearest words of each label, the likeliest label first."""
        for score in sorted(self.scores, key=lambda s: -s.value)[:_SHOWN_LABELS]:
            # None of the labels has no words.
            near = self.nearest.get(score.label, ())[:_SHOWN_WORDS]
            if near:
                yield score.label, ", ".join(f"{words} {cosine:.2f}" for words, cosine in near)

    def _columns(self) -> list[str]:
        return [
            "label",
            "together" if len(self.experts) > 1 else "probability",
            *(["log-likelihood", "tokens"] if self.prediction.prepared else []),
            *("encoder alone" if name == "encoder" else name for name in self.experts),
        ]

    def _rows(self) -> Iterator[list[str]]:
        """Yield the cells of each label behind its name, the likeliest label first."""
        for score in sorted(self.scores, key=lambda s: -s.value):
            cells = [score.label, f"{self.prediction.probabilities[score.label]:6.1%}"]
            if score.log_likelihood is not None:
                cells += [f"{score.log_likelihood:.2f}", str(score.tokens)]
            elif self.prediction.prepared is not None:
                cells += ["–", "–"]
            said = [expert.get(score.label) for expert in self.experts.values()]
            yield [*cells, *("–" if each is None else f"{each:.1%}" for each in said)]

    def _score_table(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(*self._columns(), box=None, header_style="dim")
        for label, probability, *cells in self._rows():
            bar = f"{probability} {'█' * round(20 * self.prediction.probabilities[label])}"
            table.add_row(Text(label), bar, *cells, style="bold" if label in self.prediction.labels else "")
        return table

    def _notes(self, prompt: Prompt) -> str:
        retrieved = all(demo.similarity is not None for demo in self.demonstrations)
        order = "nearest first" if retrieved else "in the prompt's order"
        notes = [
            f"{prompt.kept} demonstrations in the prompt, {order}:" if self.demonstrations else "no demonstrations"
        ]
        if prompt.dropped:
            notes.append(f"{prompt.dropped} farthest dropped to fit the token limit")
        if prompt.demos_cut:
            notes.append(f"{prompt.demos_cut} shortened")
        if prompt.input_cut:
            notes.append("the input was cut to its token limit")
        return "; ".join(notes)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns())
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>" for cells in self._rows()
        )
        page = (
            f"<p><b>{html.escape(str(self.prediction.text))}</b> → <b>{html.escape(self.label)}</b></p>"
            f"<table><tr>{head}</tr>{rows}</table>"
        )
        if self.verdict:
            page += f"<p>{html.escape(self.verdict)}</p>"
        if self.nearest:
            near = (f"<tr><td>{html.escape(name)}</td><td>{html.escape(n)}</td></tr>" for name, n in self._near_words())
            page += f"<table><tr><th>label</th><th>nearest words, by cosine</th></tr>{''.join(near)}</table>"
        if self.prediction.prepared is None:
            return page
        demos = "".join(
            f"<tr><td>{html.escape(str(d.sentence.text))}</td><td>{html.escape(d.words)}</td>"
            f"<td>{html.escape(_origin(d))}</td><td>{'' if d.kept else 'dropped'}</td></tr>"
            for d in nearest_first(self.demonstrations)
        )
        return (
            f"{page}<p>{html.escape(self._notes(self.prediction.prepared.prompt))}</p>"
            "<table><tr><th>pseudo-demonstration</th><th>label words</th><th>retrieved</th><th></th></tr>"
            f"{demos}</table><pre>{html.escape(self.prompt)}</pre>"
        )


def _prompt_dict(prompt: Prompt) -> dict[str, Any]:
    return {
        "prefix": prompt.prefix.text,
        "stem": prompt.stem.text,
        "branches": [{"given": b.given.text, "scored": b.scored.text} for b in prompt.branches],
        "kept": prompt.kept,
        "dropped": prompt.dropped,
        "demos_cut": prompt.demos_cut,
        "input_cut": prompt.input_cut,
    }


def _origin(demo: Demonstration) -> str:
    """Say how a demonstration was retrieved."""
    place = f"{demo.sentence.source} ({demo.sentence.domain}) #{demo.sentence.row}"
    if demo.nearest is None:
        return f"drawn at random, {place}"
    if demo.nearest == demo.sentence:
        return f"similarity {demo.similarity:.3f}, {place}"
    adjacent = abs(demo.nearest.row - demo.sentence.row) == 1 and demo.nearest.document == demo.sentence.document
    relation = "next to" if adjacent else "in the domain of"
    return f"{place}, {relation} #{demo.nearest.row}, similarity {demo.similarity:.3f}: {demo.nearest.text}"


def _demonstration_dict(demo: Demonstration) -> dict[str, Any]:
    return {
        "row": demo.sentence.row,
        "text": demo.sentence.text,
        "domain": demo.sentence.domain,
        "source": demo.sentence.source,
        "label": demo.label,
        "words": demo.words,
        "nearest": None if demo.nearest is None else {"row": demo.nearest.row, "text": demo.nearest.text},
        "similarity": demo.similarity,
        "kept": demo.kept,
    }
