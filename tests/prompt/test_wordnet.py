from zicl.prompt.wordnet import same_root


def test_forms_of_a_word():
    assert same_root("sports", "sport")
    assert same_root("billing", "bills")
    assert same_root("technology", "technological")
    assert not same_root("sports", "athletics")
