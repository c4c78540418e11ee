"""zicl serve: the page and the API, on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from zicl.cli.console import print_status
from zicl.cli.options import ClassifierOptions, FitTextOption, with_options
from zicl.cli.preflight import preflight
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.classifier import ZICLClassifier
    from zicl.prompt.labels import Labels


@dataclass(frozen=True)
class ServeOptions(ClassifierOptions):
    """The options of a classifier; its settings also hold for the methods that requests name."""

    one_method: ClassVar[bool] = False
    # The folder it is given may be a saved classifier, and requests may name their own.
    needs_labels: ClassVar[bool] = False

    def named_labels(self) -> Labels:
        """Return the labels of the server's own classifier, if it has some."""
        from zicl.apps.serve.configurations import NO_LABELS

        return NO_LABELS if self.labels is None else super().named_labels()


@with_options(ServeOptions)
def serve(
    options: ServeOptions,
    place: Annotated[Path | None, typer.Argument(help="A saved classifier, or a corpus.", metavar="FOLDER")] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; any but the loopback address needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="The port to listen on; 0 picks a free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None,
        typer.Option(help="The token that clients must send as 'Authorization: Bearer'.", envvar="ZICL_TOKEN"),
    ] = None,
    queue: Annotated[int, typer.Option(help="Maximum number of waiting texts, over all clients.")] = 1024,
    deadline: Annotated[float, typer.Option(help="Seconds after which a request is aborted.")] = 300.0,
    max_body: Annotated[int, typer.Option(help="Maximum bytes of a request.")] = 1 << 20,
    max_texts: Annotated[int, typer.Option(help="Maximum texts of a request.")] = 256,
    max_pile: Annotated[int, typer.Option(help="Maximum texts to learn from, or to draw, together.")] = 2000,
    max_characters: Annotated[int, typer.Option(help="Maximum characters of a text.")] = 10_000,
    max_labels: Annotated[int, typer.Option(help="Maximum labels of a request.")] = 100,
    max_k: Annotated[int, typer.Option(help="Maximum demonstrations of a request.")] = 64,
    text_column: FitTextOption = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, if this is a terminal.")
    ] = True,
) -> None:
    """Serve a page that labels texts and explains why, and an HTTP API, until Ctrl-C.

    Nothing has to be given: labels are named, and texts dropped, on the page.
    """
    options = _with_folder(options, place)
    columns = options.fit_columns(text_column)
    preflight(serving=True)
    from zicl.apps.serve.limits import RequestLimits
    from zicl.apps.serve.security import Access
    from zicl.apps.serve.server import check_free
    from zicl.apps.serve.server import serve as run

    access = Access(host, port, token)
    limits = RequestLimits(max_body, max_texts, max_characters, max_labels, max_k, queue, deadline, max_pile)

    def listening(address: str) -> None:
        print_status(f"serving {address} (loading the models; Ctrl-C stops it)")
        if open_page and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(address)

    if options.searches_synonyms():
        check_free(access)
        print_status("finding synonyms of the labels: the models are loaded first")
        classifier = _classifier(options, columns)
        ended = run(lambda: classifier, access, limits, listening=listening, ready=_print_ready)
    else:
        ended = run(lambda: _classifier(options, columns), access, limits, listening=listening, ready=_print_ready)
    print_status("stopped")
    if not ended:
        # Python would wait until the models are loaded or fetched; a download is moved into place only when complete.
        sys.stdout.flush()
        os._exit(0)


def _with_folder(options: ServeOptions, place: Path | None) -> ServeOptions:
    """Return the options with the named folder as the saved classifier or the corpus, by what it holds."""
    if place is not None:
        if options.saved is not None:
            raise UsageError(f"{place} and --with {options.saved} were both given", hint="give one of them")
        if (place / "classifier.json").is_file():
            options = options.but(saved=place)
        elif options.corpus is not None:
            raise UsageError(f"{place} and --corpus {options.corpus} were both given", hint="give one of them")
        elif (place / "manifest.json").is_file():
            options = options.but(corpus=place)
        else:
            raise UsageError(
                f"{place} is neither a saved classifier nor a corpus",
                hint="make one: zicl classify … --save tickets.zicl-clf, or zicl corpus build -o reviews.zicl …",
            )
    if options.saved is None and options.labels is None:
        _check_without_labels(options)
    return options


def _check_without_labels(options: ServeOptions) -> None:
    """Refuse what needs labels at the start, where none are given."""
    needs = _setting_that_asks_lm(options)
    needs = "--fit" if options.fit is not None else needs
    if needs is not None:
        raise UsageError(
            f"no labels were given, and {needs} needs them at the start",
            hint=f"--labels terrible,great, or leave out {needs}: on the page, you name labels and choose a method",
        )


def _setting_that_asks_lm(options: ServeOptions) -> str | None:
    """Return what was given that asks a language model, as it is written on the command line."""
    from zicl.config import get_method

    scoring = options.resolved().scoring
    if not scoring.asks_lm:
        return None
    if options.method is not None and get_method(options.method).scoring.experts == scoring.experts:
        return f"--method {options.method}"
    return f"{'--set scoring.experts=' if options.experts is None else '--experts '}{','.join(scoring.experts)}"


def _classifier(options: ClassifierOptions, columns: Mapping[str, str | None]) -> ZICLClassifier:
    return options.classifier(columns=columns)


def _print_ready(classifier: ZICLClassifier) -> None:
    settings = classifier.settings_
    if settings.labelling.words == "synonyms" and settings.retrieval.k:
        shown = [f"{label.name} as {' or '.join(label.synonyms)}" for label in classifier.labels_]
        print_status(f"demonstrations show {', '.join(shown)}")
    print_status("ready")
