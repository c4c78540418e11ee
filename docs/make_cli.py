"""Writes docs/CLI.md from the program's own help: ``python docs/make_cli.py``. A test compares them."""

from __future__ import annotations

from pathlib import Path

COMMANDS = [
    "", "demo", "classify", "suggest", "distill", "export", "serve", "explain", "retrieve", "prompt", "tasks",
    "evaluate", "study", "report", "verify", "merge", "check sample", "check score", "corpus build", "corpus add",
    "corpus remove", "corpus compact", "corpus info", "corpus show", "index build", "index tune", "labels suggest",
    "models list", "models pull", "models info",
]  # fmt: skip


def page() -> str:
    """The whole page."""
    from typer.testing import CliRunner

    from zicl.cli.app import app

    parts = ["# The command line\n\nWritten by `python docs/make_cli.py` from the program's own help.\n"]
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    for command in COMMANDS:
        found = runner.invoke(app, [*command.split(), "--help"], prog_name="zicl")
        title = f"zicl {command}".strip()
        parts.append(f"## {title}\n\n```text\n{found.output.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    (Path(__file__).parent / "CLI.md").write_text(page(), encoding="utf-8")
