"""Writes docs/reference/cli.md from the program's own help: ``python docs/make_cli.py``. A test compares them."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parent / "reference" / "cli.md"

COMMANDS = [
    "", "demo", "classify", "suggest", "map", "distill", "export", "serve", "explain", "retrieve", "prompt", "tasks",
    "evaluate", "study", "report", "verify", "merge", "check sample", "check score", "corpus build", "corpus add",
    "corpus remove", "corpus compact", "corpus info", "corpus show", "index build", "index tune", "labels suggest",
    "models list", "models pull", "models info",
]  # fmt: skip


def page() -> str:
    """The whole page."""
    from typer.testing import CliRunner

    from zicl.cli.app import app

    parts = [
        "# The command line\n\nWritten by `python docs/make_cli.py` from the program's own help. Exit status: 0 when "
        "done, 1 when something failed, 2 when the call was wrong, 130 after Ctrl-C.\n"
    ]
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    for command in COMMANDS:
        found = runner.invoke(app, [*command.split(), "--help"], prog_name="zicl")
        title = f"zicl {command}".strip()
        parts.append(f"## {title}\n\n```text\n{found.output.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
