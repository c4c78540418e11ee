"""Rows of files: what is wrong with several of them is told at once."""

import pytest

from zicl.exceptions import TextError
from zicl.inputs.tables import read_rows


def test_all_rows_without_text_are_told_at_once(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("id,text\n1,One lamp.\n2,\n3, \n4,Two lamps.\n")
    with pytest.raises(TextError, match=r"row 2 below the header: .* as it is in 2 rows in all \(2, 3\)"):
        read_rows(str(path))
    path.write_text("id,text\n" + "".join(f"{number},\n" for number in range(9)))
    with pytest.raises(TextError, match=r"in 9 rows in all \(1, 2, 3, 4, 5 and so on\)"):
        read_rows(str(path))
    path.write_text("id,text\n1,One lamp.\n2,\n")
    with pytest.raises(TextError, match="row 2 below the header, column 'text', is empty"):
        read_rows(str(path))
