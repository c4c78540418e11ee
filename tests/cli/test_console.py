"""Progress in a log: few lines, and never long without one."""

from zicl.cli.console import progress_bars, progress_lines


def test_a_line_where_a_stage_begins_and_one_a_minute():
    said, now = [], [0.0]
    report = progress_lines(said.append, lambda: now[0])
    for second in range(0, 301, 10):
        now[0] = float(second)
        report("embedding", 100 + second, 400, note="shard 2")
    report("checking", 0)
    assert said[0] == "embedding shard 2"
    assert said[1] == "embedding shard 2: 40%, about 4 minutes left"
    assert said[-1] == "checking"
    assert len(said) == 7


def test_a_terminal_names_stages_and_counts_texts(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    with progress_bars() as report:
        report("loading the encoder", 0, None)
        report("encoding the texts", 512, 1000)
        report("reading", 50_000, 200_000)
    said = capsys.readouterr().err
    assert "loading the encoder" in said
    assert "512 of 1,000" in said
    assert "25%" in said
    assert "50,000" not in said


def test_what_an_earlier_run_did_is_not_counted_for_the_time_left():
    said, now = [], [0.0]
    report = progress_lines(said.append, lambda: now[0])
    for second in range(0, 121, 10):
        now[0] = float(second)
        report("embedding", 900 + second / 2, 1000)
    # 60 of the last 100 took two minutes.
    assert said[-1] == "embedding: 96%, about 80 seconds left"


def test_where_nothing_moves_or_nobody_knows_the_end_nothing_is_claimed():
    said, now = [], [0.0]
    report = progress_lines(said.append, lambda: now[0])
    for second in range(0, 600, 30):
        now[0] = float(second)
        report("loading", 0, 1)
        report("waiting", second)
    assert said == ["loading", "waiting"]
