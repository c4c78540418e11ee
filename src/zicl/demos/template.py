"""How an input and a label are written: minimal templates and the paper's separators."""

from __future__ import annotations

from dataclasses import dataclass

from zicl._registry import did_you_mean
from zicl.exceptions import ConfigError


@dataclass(frozen=True)
class Template:
    """One line for the input, one for the label.

    ``joint`` stands between the two lines of an example, ``separator`` between examples. A line that is
    not the first begins with these newlines as a part of its own tokens, and no line ends in white space,
    so that the places where text and tokens are split agree.

    >>> Template("Review: {input}", "Sentiment: {label}").input_line("A gem.")
    'Review: A gem.'
    """

    input: str = "{input}"
    label: str = "{label}"
    joint: str = "\n"
    separator: str = "\n\n\n"

    def __post_init__(self) -> None:
        for field, text in (("input", self.input), ("label", self.label)):
            if text.count("{" + field + "}") != 1:
                raise ConfigError(
                    f"the template's {field} line {text!r} must contain {{{field}}} exactly once",
                    hint="for example: 'Review: {input}' and 'Sentiment: {label}'",
                )
            if text != text.strip():
                raise ConfigError(
                    f"the template's {field} line {text!r} begins or ends in white space",
                    hint="a space at the joint would change the tokens of what follows: take it away",
                )
        for name, text in (("joint", self.joint), ("separator", self.separator)):
            if not text or text.strip():
                raise ConfigError(f"the template's {name} {text!r} must be white space, e.g. a newline")

    def input_line(self, text: str) -> str:
        """The input's line; for an empty text the template's own words."""
        return self.input.replace("{input}", text).strip()

    def label_line(self, words: str) -> str:
        """The label's line."""
        return self.label.replace("{label}", words)


TEMPLATES = {
    "review": Template("Review: {input}", "Sentiment: {label}"),
    "text": Template("Text: {input}", "Category: {label}"),
    "none": Template(),
}


def get_template(name: str) -> Template:
    """A template by name."""
    if name not in TEMPLATES:
        raise did_you_mean("template", name, TEMPLATES)
    return TEMPLATES[name]
