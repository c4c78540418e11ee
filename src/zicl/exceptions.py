"""All errors that zicl raises on purpose, as one tree.

    ZICLError
    ├── UsageError              something the caller gave is wrong (exit code 2)
    │   ├── UnknownNameError    no retriever, template, model … with this name
    │   ├── ConfigError         an impossible or contradictory setting
    │   ├── LabelError          labels that cannot be distinguished, or too few
    │   ├── SynonymError        no good enough synonym for one or more labels
    │   ├── MissingExtraError   a feature whose optional packages are not installed
    │   └── TextError           empty text, NUL bytes, broken encoding, missing columns
    ├── CorpusError             a corpus folder cannot be used
    │   ├── CorpusMissingError
    │   ├── CorpusVersionError
    │   ├── CorpusDamagedError
    │   ├── EmptyCorpusError
    │   └── IndexMissingError
    ├── EncoderMismatchError    the index was built with another encoder than the one in use
    ├── RetrievalError          fewer demonstrations than requested
    ├── PromptError             a prompt that cannot be built
    │   └── TokenizationError   the tokens do not decode to the text
    ├── ModelError              a language model or encoder that cannot be used
    │   ├── ModelNotFoundError
    │   ├── OfflineError        the network is needed, but not allowed or not there
    │   ├── DownloadError       a download failed or has the wrong hash (may be retried)
    │   ├── LicenceError        a licence has to be accepted first
    │   ├── HeadsError          a model whose attention heads are not accessible
    │   ├── ServerError         an inference server that fails, or cannot give log-likelihoods
    │   └── BudgetError         the spending limit is reached; answers received so far are kept
    ├── ClusterError            a Ray cluster that cannot be reached, or loses its workers
    ├── StorageError            full disk, read-only folder, a target that exists already
    └── MemoryLimitError        memory ran out

The message says what was wrong and what was expected; ``hint`` says what to do.
Warnings: ``PileWarning``, the texts to learn from allow an answer, but not the one that was hoped for;
``InputWarning``, a file is read in another way than its name says.
"""

from __future__ import annotations


class ZICLError(Exception):
    r"""Base class of all errors raised by zicl.

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


class PileWarning(UserWarning):
    """Texts to learn from that are too few, all alike, or contradict their labels: what happens is said."""


class InputWarning(UserWarning):
    """A file that is read in another way than its name says: how is said."""


class UsageError(ZICLError, ValueError):
    """Something the caller gave is wrong."""

    exit_code = 2


class UnknownNameError(UsageError):
    """An unknown name; the hint suggests the closest known one."""


class ConfigError(UsageError):
    """An impossible or contradictory setting."""


class LabelError(UsageError):
    """Labels that cannot be distinguished, or too few of them."""


class SynonymError(UsageError):
    """No good enough synonym exists for one or more labels."""


class MissingExtraError(UsageError):
    """A feature whose optional packages are not installed; the hint names the pip command."""


class TextError(UsageError):
    """Input text that cannot be used."""


class CorpusError(ZICLError):
    """A corpus folder cannot be used."""


class CorpusMissingError(CorpusError):
    """No corpus exists at this path."""


class CorpusVersionError(CorpusError):
    """The folder has another version of the format."""


class CorpusDamagedError(CorpusError):
    """A file of the folder is missing or was changed."""


class EmptyCorpusError(CorpusError):
    """A corpus without any sentence."""


class IndexMissingError(CorpusError):
    """The corpus has text but no vectors."""


class EncoderMismatchError(ZICLError):
    """The index was built with another encoder than the one in use."""


class RetrievalError(ZICLError):
    """Fewer demonstrations than requested."""


class PromptError(ZICLError):
    """A prompt that cannot be built."""


class TokenizationError(PromptError):
    """The tokens do not decode to the text they were made from."""


class ModelError(ZICLError):
    """A language model or encoder that cannot be used."""


class ModelNotFoundError(ModelError):
    """No file, folder or server has this model, nor the model hub."""


class OfflineError(ModelError):
    """The network is needed, but not allowed or not there."""


class DownloadError(ModelError):
    """A download failed or has the wrong hash."""

    retry = True


class LicenceError(ModelError):
    """A licence has to be accepted first."""


class HeadsError(ModelError):
    """A model whose attention heads are not accessible."""


class ServerError(ModelError):
    """An inference server that fails, or cannot give log-likelihoods.

    ``status`` is its HTTP status, if the server was ``reached``.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, status: int | None = None, reached: bool = True
    ) -> None:
        super().__init__(message, hint=hint)
        self.status, self.reached = status, reached


class BudgetError(ModelError):
    """The spending limit is reached; answers received so far are kept."""


class ClusterError(ZICLError):
    """A Ray cluster that cannot be reached, or loses its workers."""


class StorageError(ZICLError):
    """Writing failed: full disk, read-only folder, or a target that exists already."""


class MemoryLimitError(ZICLError):
    """Memory ran out; the hint says what to lower."""


def first_line(error: BaseException) -> str:
    r"""Return the first line of another library's error message, or its class name if the message is empty.

    >>> first_line(OSError("no such file\nat all")), first_line(KeyError())
    ('no such file', 'KeyError')
    """
    return (str(error).splitlines() or [type(error).__name__])[0]
