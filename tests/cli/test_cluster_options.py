"""Options for a cluster that cannot be meant are refused before anything is loaded or reached."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "--on", "ray,workers=0"], "'workers=0' was not expected"),
        (["classify", "a text", "-l", "bad,good", "--on", "ray,worker=2"], "'worker=2' was not expected"),
        (["corpus", "build", "raw.txt", "--on", "ray,workers"], "'workers' was not expected"),
        (["evaluate", "--on", "ray", "--dry-run"], "--dry-run measures this machine"),
        (["evaluate", "--on", "127.0.0.1:1", "--server", "price_in=1"], "price_in: several workers cannot keep one"),
        (
            ["classify", "a text", "-l", "bad,good", "--on", "127.0.0.1:1,searchers=2"],
            "z-icl+ searches no corpus for the texts",
        ),
        (
            ["classify", "a text", "-l", "bad,good", "--on", "127.0.0.1:1", "--server", "max_cost=1"],
            "max_cost: several workers cannot keep one account",
        ),
    ],
)
def test_they_are_refused(run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text("A sentence. Another one.")
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
