"""Options for a cluster that cannot be meant are refused before anything is loaded or reached."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "--workers", 2], "--workers is for work on a cluster"),
        (["evaluate", "--searchers", 2], "--searchers is for work on a cluster"),
        (["evaluate", "--on", "ray", "--dry-run"], "--dry-run measures this machine"),
        (["classify", "a text", "-l", "bad,good", "--workers", 2], "--workers is for work on a cluster"),
        (["classify", "a text", "-l", "bad,good", "--searchers", 2], "--searchers is for work on a cluster"),
        (["corpus", "build", "raw.txt", "--workers", 2], "--workers is for work on a cluster"),
        (
            ["evaluate", "--on", "127.0.0.1:1", "--price-in", 1],
            "--price-in: several workers cannot keep one account",
        ),
        (
            ["classify", "a text", "-l", "bad,good", "--on", "127.0.0.1:1", "--price-in", 1, "--max-cost", 1],
            "--max-cost: several workers cannot keep one account",
        ),
    ],
)
def test_they_are_refused(run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text("A sentence. Another one.")
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
