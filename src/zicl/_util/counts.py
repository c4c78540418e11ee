"""Say how many there are of something, in words that fit the number."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a number with what it counts; ``many`` is the plural, where that is more than an s behind ``one``.

    >>> counted(1, "row"), counted(1200, "row"), counted(1, "text was", "texts were")
    ('1 row', '1,200 rows', '1 text was')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
