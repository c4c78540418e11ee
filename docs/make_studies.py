"""Write figures and findings of the stored studies into docs/results/studies: ``python docs/make_studies.py``.

Everything is computed from the stored rows; no model is loaded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "results" / "studies"
PAGES = sorted(FOLDER.glob("*.md"))
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
# Where studies are stored, and their settings: on the small corpus, and on the large one of the claims.
FOLDERS = {"studies": "studies.toml", "claims": "claims-studies.toml"}
_PLACE = re.compile(r"(<!-- (?P<name>[a-z-]+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return a page with the results of its study between the marks; the text around them stays."""
    return _PLACE.sub(lambda place: place[1] + _results(place["name"]) + place[3], text)


def _results(name: str) -> str:
    where = next((each for each in FOLDERS if (BENCHMARKS / "results" / each / name / "study.json").is_file()), None)
    if where is None:
        return "Not run yet.\n"
    folder = f"../../../benchmarks/results/{where}/{name}"
    summary = json.loads((FOLDER / folder / "study.json").read_text(encoding="utf-8"))
    figures = [f"![{figure['title']}. {figure['alt']}]({folder}/{figure['file']})\n" for figure in summary["figures"]]
    findings = "".join(f"- {line}\n" for line in summary["findings"])
    return "\n".join([f"**Found here**, with 95 % intervals:\n\n{findings}", *figures])


def summarize_all() -> None:
    """Draw the figures and write the findings of all studies that have rows."""
    from zicl.lab.study.registry import NAMES, STUDIES
    from zicl.lab.study.run import summarize
    from zicl.lab.study.settings import read_settings

    for where, file in FOLDERS.items():
        settings = read_settings(BENCHMARKS / file, {})
        for name in NAMES:
            if (folder := BENCHMARKS / "results" / where / name).is_dir():
                study = STUDIES.get(name)
                summarize(study, settings.options(study), folder)


if __name__ == "__main__":
    summarize_all()
    for each in PAGES:
        each.write_text(page(each.read_text(encoding="utf-8")), encoding="utf-8")
