"""Templates: how an input and a label are written, with the paper's separators."""

from __future__ import annotations

from dataclasses import dataclass

from zicl._util.registry import did_you_mean
from zicl.exceptions import ConfigError
from zicl.inputs.pair import Pair, Text


@dataclass(frozen=True)
class Template:
    """One line for the input, one for the label. A pair has two fields, ``{first}`` and ``{second}``.

    ``joint`` separates the two lines of an example, ``separator`` separates examples. These newlines are tokenized
    with the line that follows them, and no line ends in white space, so text and tokens are split at the same places.

    >>> Template("Review: {input}", "Sentiment: {label}").input_line("A gem.")
    'Review: A gem.'
    """

    input: str = "{input}"
    label: str = "{label}"
    joint: str = "\n"
    separator: str = "\n\n\n"

    def __post_init__(self) -> None:
        for field, text in (("input", self.input), ("label", self.label)):
            required = ("first", "second") if field == "input" and self.two_fields else (field,)
            if any(text.count("{" + name + "}") != 1 for name in required):
                names = " and ".join("{" + name + "}" for name in required)
                raise ConfigError(
                    f"the template's {field} line {text!r} must contain {names} exactly once",
                    hint="for example: 'Review: {input}' and 'Sentiment: {label}'; a pair has {first} and {second}",
                )
            if text != text.strip():
                raise ConfigError(
                    f"the template's {field} line {text!r} begins or ends in white space",
                    hint="remove it: a space between two lines would change the tokens of the second",
                )
        for name, text in (("joint", self.joint), ("separator", self.separator)):
            if not text or text.strip():
                raise ConfigError(f"the template's {name} {text!r} must be white space, e.g. a newline")

    @property
    def two_fields(self) -> bool:
        """Return whether inputs are pairs."""
        return "{first}" in self.input or "{second}" in self.input

    def input_line(self, text: Text) -> str:
        """Return the input's line; for an empty text only the words of the template."""
        if not self.two_fields:
            return self.input.replace("{input}", str(text)).strip()
        first, second = (text.first, text.second) if isinstance(text, Pair) else (text, text)
        # Not two replacements in a row: the first text may contain "{second}".
        before, _, after = self.input.partition("{first}")
        return (before.replace("{second}", second) + first + after.replace("{second}", second)).strip()

    def label_line(self, words: str) -> str:
        """Return the label's line."""
        return self.label.replace("{label}", words)


TEMPLATES = {
    "review": Template("Review: {input}", "Sentiment: {label}"),
    "text": Template("Text: {input}", "Category: {label}"),
    "pair": Template("First: {first}\nSecond: {second}", "Relation: {label}"),
    "choice": Template("Text: {input}", "Answer: {label}"),
    "none": Template(),
}


def get_template(name: str) -> Template:
    """Return a template by name."""
    if name not in TEMPLATES:
        raise did_you_mean("template", name, TEMPLATES)
    return TEMPLATES[name]
