"""Every error zicl raises on purpose, as one tree.

    ZICLError
    ├── UsageError              something the caller gave is wrong (exit code 2)
    │   ├── UnknownNameError    no such retriever, template, model …
    │   ├── ConfigError         an impossible or contradictory setting
    │   ├── LabelError          labels that cannot be told apart, or too few
    │   ├── SynonymError        no synonym good enough for one or more labels
    │   └── TextError           empty text, NUL bytes, broken encoding, missing columns
    ├── CorpusError             a corpus folder cannot be used
    │   ├── CorpusMissingError
    │   ├── CorpusVersionError
    │   ├── CorpusDamagedError
    │   ├── EmptyCorpusError
    │   └── IndexMissingError
    ├── EncoderMismatchError    queried with another encoder than the one it was indexed with
    ├── RetrievalError          fewer demonstrations than asked for
    ├── PromptError             a prompt that cannot be built
    │   └── TokenizationError   the tokens do not decode to the text
    ├── ModelError              a language model or encoder that cannot be used
    │   ├── ModelNotFoundError
    │   ├── OfflineError        the network would be needed, and was ruled out
    │   ├── DownloadError       fetching failed or the hash is wrong (may be retried)
    │   ├── LicenceError        a licence that has to be accepted first
    │   ├── HeadsError          a model whose attention heads cannot be reached
    │   ├── ServerError         an inference server that fails, or cannot give log-likelihoods
    │   └── BudgetError         the most that may be spent is reached; what was answered is kept
    ├── ClusterError            a Ray cluster that is not reached, or loses its workers
    └── StorageError            full disk, read-only folder, a target that exists

The message says what was wrong and what was expected; ``hint`` says what to do.
"""

from __future__ import annotations


class ZICLError(Exception):
    r"""Base of all errors raised by zicl.

    >>> str(ZICLError("no such file", hint="check the path"))
    'no such file\n  → check the path'
    """

    exit_code = 1
    retry = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  → {self.hint}" if self.hint else self.message


class UsageError(ZICLError, ValueError):
    """Something the caller gave is wrong."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that stands for nothing; the message offers the nearest ones."""


class ConfigError(UsageError):
    """An impossible or contradictory setting."""


class LabelError(UsageError):
    """Labels that cannot be told apart, or too few of them."""


class SynonymError(UsageError):
    """No synonym is good enough for one or more labels."""


class TextError(UsageError):
    """Input text that cannot be used."""


class CorpusError(ZICLError):
    """A corpus folder cannot be used."""


class CorpusMissingError(CorpusError):
    """There is no corpus where one was expected."""


class CorpusVersionError(CorpusError):
    """The folder was written by another version of the format."""


class CorpusDamagedError(CorpusError):
    """A file of the folder is missing or its hash differs."""


class EmptyCorpusError(CorpusError):
    """No sentence was found."""


class IndexMissingError(CorpusError):
    """The corpus has text but no vectors."""


class EncoderMismatchError(ZICLError):
    """The vectors were made with another encoder."""


class RetrievalError(ZICLError):
    """Fewer demonstrations than asked for."""


class PromptError(ZICLError):
    """A prompt that cannot be built."""


class TokenizationError(PromptError):
    """The tokens do not decode to the text they were made from."""


class ModelError(ZICLError):
    """A language model or encoder that cannot be used."""


class ModelNotFoundError(ModelError):
    """No model under that name, folder or id."""


class OfflineError(ModelError):
    """The network would be needed, and was ruled out."""


class DownloadError(ModelError):
    """Fetching failed, or what came is not what was expected."""

    retry = True


class LicenceError(ModelError):
    """A licence that has to be accepted first."""


class HeadsError(ModelError):
    """A model whose attention heads cannot be reached."""


class ServerError(ModelError):
    """An inference server fails, or cannot give log-likelihoods; ``status`` is HTTP's, where it was ``reached``."""

    def __init__(
        self, message: str, *, hint: str | None = None, status: int | None = None, reached: bool = True
    ) -> None:
        super().__init__(message, hint=hint)
        self.status, self.reached = status, reached


class BudgetError(ModelError):
    """The most that may be spent is reached; what was answered is kept."""


class ClusterError(ZICLError):
    """A Ray cluster that is not reached, or loses its workers."""


class StorageError(ZICLError):
    """Writing failed: full disk, read-only folder, or a target that exists."""


def first_line(error: BaseException) -> str:
    r"""What another library's error says first, for a message of ours; its kind where it says nothing.

    >>> first_line(OSError("no such file\nat all")), first_line(KeyError())
    ('no such file', 'KeyError')
    """
    return (str(error).splitlines() or [type(error).__name__])[0]
