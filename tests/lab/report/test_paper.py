"""The shipped numbers of the paper: all there, as printed, consistent except where flagged."""

from zicl.lab.report.paper import AVERAGES, paper_results

ROWS = {(row.model, row.inference, row.method): row for row in paper_results()}


def test_every_cell_is_there():
    sizes = [len(row.cells) for row in paper_results()]
    assert sizes == [11] * 25 + [6] * 9
    assert {row.model for row in paper_results()} == {"GPT-J, GPT-NeoX", "GPT-J", "GPT-NeoX", "GPT-3"}
    for model, methods in (("GPT-J", 6), ("GPT-NeoX", 6), ("GPT-3", 4)):
        for inference in ("channel", "direct"):
            assert sum(key[:2] == (model, inference) for key in ROWS) == methods


def test_known_values():
    def cell(model, inference, method, column):
        found = ROWS[model, inference, method].cells[column]
        return found.mean, found.deviation

    assert cell("GPT-J", "channel", "no-demos", "CR") == (73.2, 0.0)
    assert cell("GPT-J", "channel", "z-icl", "covered") == (65.8, 0.3)
    assert cell("GPT-J", "direct", "random-inputs", "SST2") == (69.9, 12.9)
    assert cell("GPT-NeoX", "channel", "naive", "Yelp5") == (36.9, 0.8)
    assert cell("GPT-NeoX", "direct", "icl-random", "not-covered") == (65.2, 10.2)
    assert cell("GPT-3", "channel", "z-icl", "SST2") == (82.4, 74.7)
    assert cell("GPT-3", "direct", "icl-gold", "Tweet") == (30.5, 8.0)
    assert cell("GPT-J, GPT-NeoX", "none", "majority", "Tweet") == (38.1, 0.0)


def test_flags_name_cells_that_exist_and_say_why():
    flagged = [cell for row in paper_results() for cell in row.cells.values() if cell.doubt]
    assert ROWS["GPT-3", "channel", "z-icl"].cells["SST2"].doubt
    assert len(flagged) == 9
    assert all(len(cell.doubt) > 20 and not cell.doubt.endswith(".") for cell in flagged)


def test_averages_are_those_of_their_cells_except_where_flagged():
    """Both the cells and the averages are rounded to a tenth: they may be a tenth apart, no more."""
    checked = 0
    for row in paper_results():
        for name, tasks in row.averaged.items():
            assert name in AVERAGES
            members = [row.cells[task] for task in tasks]
            average = row.cells[name]
            if average.doubt or any(member.doubt for member in members):
                continue
            checked += 1
            assert abs(average.mean - sum(m.mean for m in members) / len(members)) < 0.101, (row, name)
            assert abs(average.deviation - sum(m.deviation for m in members) / len(members)) < 0.101, (row, name)
    assert checked > 50


def test_deviations_are_plausible_except_where_flagged():
    for row in paper_results():
        for cell in row.cells.values():
            assert cell.doubt or cell.deviation < 20
