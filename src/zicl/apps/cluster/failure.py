"""What went wrong on a cluster, in words of this project."""

from __future__ import annotations

from zicl.exceptions import ClusterError, ZICLError


def own_error(error: BaseException) -> BaseException:
    """The error that our code raised on a worker, which Ray wraps in its own; else one that says what Ray said."""
    inner: BaseException | None = error
    while inner is not None:
        cause = getattr(inner, "cause", None)
        if isinstance(cause, BaseException):
            # Before its class is looked at: Ray's wrapper is of our class too, and its message a whole traceback.
            inner = cause
        elif isinstance(inner, ZICLError):
            return inner
        else:
            inner = inner.__cause__
    return ClusterError(f"the cluster failed: {in_short(error)}", hint="see the cluster's own logs")


def in_short(error: BaseException) -> str:
    r"""An error's message on one line, its end rather than its beginning: Ray tells the reason last.

    >>> in_short(ValueError("a\n b")), in_short(ValueError())
    ('a b', 'ValueError')
    """
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 400 else f"…{words[-400:]}"
