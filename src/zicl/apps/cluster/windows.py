"""Texts in pieces that are worth a task each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# A task takes so much text; a window of so many tasks is read ahead, which is what the driver holds of the text.
TASK_CHARACTERS, _WINDOW = 1 << 20, 64


def windows(texts: Iterable[str], characters: int = TASK_CHARACTERS, tasks: int = _WINDOW) -> Iterator[list[list[str]]]:
    """Texts in groups of at least so many characters, and so many groups to a window.

    >>> list(windows(["aa", "b", "c", "dd"], characters=2, tasks=2))
    [[['aa'], ['b', 'c']], [['dd']]]
    """
    window: list[list[str]] = []
    length = characters
    for text in texts:
        if length >= characters:
            if len(window) == tasks:
                yield window
                window = []
            window.append([])
            length = 0
        window[-1].append(text)
        length += len(text)
    if window:
        yield window
