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
from zicl.exceptions import UsageError

if TYPE_CHECKING:
    from zicl.classifier import ZICLClassifier


@dataclass(frozen=True)
class ServeOptions(ClassifierOptions):
    """The same options; what is set holds for the methods that requests name, too."""

    one_method: ClassVar[bool] = False


@with_options(ServeOptions)
def serve(
    choice: ServeOptions,
    place: Annotated[
        Path | None, typer.Argument(help="A saved classifier, or a corpus (with --labels).", metavar="FOLDER")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes any free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, typer.Option(help="What clients must send as 'Authorization: Bearer'.", envvar="ZICL_TOKEN")
    ] = None,
    queue: Annotated[int, typer.Option(help="Texts that may wait, of all clients together.")] = 1024,
    deadline: Annotated[float, typer.Option(help="Seconds after which a request is given up.")] = 300.0,
    max_body: Annotated[int, typer.Option(help="Bytes of a request.")] = 1 << 20,
    max_texts: Annotated[int, typer.Option(help="Texts of a request.")] = 256,
    max_characters: Annotated[int, typer.Option(help="Characters of a text.")] = 10_000,
    max_labels: Annotated[int, typer.Option(help="Labels of a request.")] = 100,
    max_k: Annotated[int, typer.Option(help="Demonstrations a request may ask for.")] = 64,
    text_column: FitTextOption = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, if this is a terminal.")
    ] = True,
) -> None:
    """Serve a page where people see why, and an HTTP API, until Ctrl-C."""
    choice = _placed(choice, place)
    columns = choice.fit_columns(text_column)
    _need_packages()
    from zicl.apps.serve.limits import RequestLimits
    from zicl.apps.serve.security import Access
    from zicl.apps.serve.server import check_free
    from zicl.apps.serve.server import serve as run

    access = Access(host, port, token)
    limits = RequestLimits(max_body, max_texts, max_characters, max_labels, max_k, queue, deadline)

    def listening(address: str) -> None:
        print_status(f"serving {address} (loading the models; Ctrl-C stops it)")
        if open_page and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(address)

    if choice.searches_synonyms():
        check_free(access)
        print_status("finding synonyms of the labels: the models are loaded first")
        made = _classifier(choice, columns)
        ended = run(lambda: made, access, limits, listening=listening, ready=_tell_ready)
    else:
        ended = run(lambda: _classifier(choice, columns), access, limits, listening=listening, ready=_tell_ready)
    print_status("stopped")
    if not ended:
        # Python would wait until the models are loaded, or fetched, for nobody. What is fetched is moved in when whole.
        sys.stdout.flush()
        os._exit(0)


def _placed(choice: ServeOptions, place: Path | None) -> ServeOptions:
    """The choice with the folder that was named: a saved classifier or a corpus, by what it holds."""
    if place is not None:
        if choice.saved is not None:
            raise UsageError(f"{place} and --with {choice.saved} were both given", hint="give one of them")
        if (place / "classifier.json").is_file():
            choice = choice.but(saved=place)
        elif choice.corpus is not None:
            raise UsageError(f"{place} and --corpus {choice.corpus} were both given", hint="give one of them")
        elif (place / "manifest.json").is_file():
            choice = choice.but(corpus=place)
        else:
            raise UsageError(
                f"{place} is neither a saved classifier nor a corpus",
                hint="make one: zicl classify … --save tickets.zicl-clf, or zicl corpus build -o reviews.zicl …",
            )
    if choice.saved is None and choice.labels is None:
        raise UsageError("no labels were given", hint="--labels terrible,great, or name a saved classifier")
    return choice


def _classifier(choice: ClassifierOptions, columns: Mapping[str, str | None]) -> ZICLClassifier:
    return choice.classifier(columns=columns)


def _tell_ready(classifier: ZICLClassifier) -> None:
    settings = classifier.settings_
    if settings.labelling.words == "synonyms" and settings.retrieval.k:
        shown = [f"{label.name} as {' or '.join(label.synonyms)}" for label in classifier.labels_]
        print_status(f"demonstrations show {', '.join(shown)}")
    print_status("ready")


def _need_packages() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("fastapi", "prometheus_client", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"zicl serve needs packages that are not installed: {', '.join(missing)}", hint='pip install "zicl[serve]"'
        )
