"""Cached answers: found by content, separate for each model, and without text on disk."""

import pytest

from zicl.exceptions import StorageError
from zicl.lm.remote.cache import ScoreCache
from zicl.lm.remote.requests import ScoreRequest
from zicl.prompt.tokens import Segment


def request(given="a secret sentence", targets=(3, 4), next_token=False):
    return ScoreRequest(Segment(given, (1, 2)), Segment("b", targets), next_token)


def test_an_answer_is_there_for_the_next_process(tmp_path):
    path, numbers = tmp_path / "deep" / "answers.sqlite", (-1.25, -0.1)
    first = ScoreCache(path, "server|model", [-1.0])
    first.store(request(), numbers)
    # Not closed: a process that was killed did not do so either.
    second = ScoreCache(path, "server|model", [-1.002])
    assert second.find([request(), request(targets=(4, 3)), request(next_token=True)]) == {request(): numbers}
    assert not any(b"secret" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    first.close()
    second.close()


def test_servers_and_models_are_kept_apart(tmp_path):
    path = tmp_path / "answers.sqlite"
    first = ScoreCache(path, "server|model", [-1.0, -2.0])
    first.store(request(), (-1.0,))
    for who, probe in (("server|other", [-1.0, -2.0]), ("server|model", [-1.0, -2.02]), ("server|model", [-1.0])):
        other = ScoreCache(path, who, probe)
        assert not other.find([request()])
        other.close()
    first.close()


def test_many_are_found_at_once(tmp_path):
    answers = ScoreCache(tmp_path / "answers.sqlite", "who", [])
    requests = [request(targets=(n,)) for n in range(1200)]
    for n, one in enumerate(requests):
        answers.store(one, (-float(n),))
    assert answers.find(requests) == {one: (-float(n),) for n, one in enumerate(requests)}
    answers.close()


def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path):
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(StorageError, match="cannot be used") as damaged:
        ScoreCache(path, "who", [])
    assert "remove that file" in damaged.value.hint
