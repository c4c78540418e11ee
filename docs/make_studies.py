"""Write figures and findings of the stored studies into docs/STUDIES.md: ``python docs/make_studies.py``.

Everything is computed from the stored rows; no model is loaded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

PAGE = Path(__file__).parent / "STUDIES.md"
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
STORED = BENCHMARKS / "results" / "studies"
_PLACE = re.compile(r"(<!-- (?P<name>[a-z-]+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with the results of every study between its marks; the text around them stays."""
    return _PLACE.sub(lambda place: place[1] + _results(place["name"]) + place[3], text)


def _results(name: str) -> str:
    path = STORED / name / "study.json"
    if not path.is_file():
        return "Not run yet.\n"
    summary = json.loads(path.read_text(encoding="utf-8"))
    folder = f"../benchmarks/results/studies/{name}"
    figures = [f"![{figure['title']}. {figure['alt']}]({folder}/{figure['file']})\n" for figure in summary["figures"]]
    findings = "".join(f"- {line}\n" for line in summary["findings"])
    return "\n".join([f"**Found here**, with 95 % intervals:\n\n{findings}", *figures])


def summarize_all() -> None:
    """Draw the figures and write the findings of all studies that have rows."""
    from zicl.lab.study.registry import NAMES, STUDIES
    from zicl.lab.study.run import summarize
    from zicl.lab.study.settings import read_settings

    settings = read_settings(BENCHMARKS / "studies.toml", {})
    for name in NAMES:
        if (STORED / name).is_dir():
            study = STUDIES.get(name)
            summarize(study, settings.options(study), STORED / name)


if __name__ == "__main__":
    summarize_all()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
