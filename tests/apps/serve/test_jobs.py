from dataclasses import dataclass

from zicl.apps.serve.jobs import PendingJob, compute


@dataclass(frozen=True)
class Ask:
    prompts: tuple
    fails: bool = False

    def begin(self):
        if self.fails:
            raise ValueError("cannot begin")
        return PendingJob(list, self.prompts)


def score(prompts):
    if "poison" in prompts:
        raise ArithmeticError("not a number")
    return [prompt.upper() for prompt in prompts]


def test_each_gets_its_own_scores():
    assert compute([Ask(("a", "b")), Ask(()), Ask(("c",))], score) == [["A", "B"], [], ["C"]]


def test_a_failure_stays_alone():
    found = compute([Ask(("a",)), Ask(("poison",)), Ask((), fails=True), Ask(("b",))], score)
    assert found[0] == ["A"]
    assert found[3] == ["B"]
    assert isinstance(found[1], ArithmeticError)
    assert isinstance(found[2], ValueError)


def test_one_that_fails_alone():
    (found,) = compute([Ask(("poison",))], score)
    assert isinstance(found, ArithmeticError)
