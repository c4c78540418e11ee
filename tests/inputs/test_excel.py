"""Workbooks: sheets, cells, what strangers may send, and rows that are written."""

import datetime
import re
import sys
import zipfile
from pathlib import Path

import pytest

from zicl.exceptions import MissingExtraError, TextError, UsageError
from zicl.inputs import excel
from zicl.inputs.excel import check_workbook_columns, check_workbook_fits, excel_rows, write_workbook
from zicl.inputs.files import check_readable
from zicl.inputs.tables import read_records, read_rows

HEADER = ["id", "text"]
SHEET, SPREADSHEET = "xl/worksheets/sheet1.xml", "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def book(path, **sheets):
    """A workbook with these sheets, each a list of rows."""
    from openpyxl import Workbook

    made = Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return made


def test_cells_of_all_types_are_read(tmp_path):
    path = tmp_path / "a.xlsx"
    row = [
        "One lamp.",
        3,
        0.25,
        True,
        datetime.datetime(2024, 5, 1),
        datetime.datetime(2024, 5, 1, 9, 30),
        "#N/A",
        None,
    ]
    book(path, Sheet=[["text", "n", "share", "paid", "day", "time", "found", " note "], row, [12345]])
    first, second = read_records(str(path))
    assert first == {
        "text": "One lamp.", "n": 3, "share": 0.25, "paid": True, "day": datetime.date(2024, 5, 1),
        "time": datetime.datetime(2024, 5, 1, 9, 30), "found": None, "note": None,
    }  # fmt: skip
    # As they are in a .csv file.
    assert [str(first[name]) for name in ("day", "time")] == ["2024-05-01", "2024-05-01 09:30:00"]
    assert second["text"] == 12345
    rows = read_rows(str(path))
    assert rows[1].text == rows[1].columns["text"] == "12345"
    assert rows[0].columns["n"] == 3


def test_the_only_sheet_with_rows_is_read_and_one_of_several_is_named(tmp_path):
    path = tmp_path / "book.xlsx"
    made = book(path, Empty=[], Data=[HEADER, [1, "One lamp."]], Hidden=[["what", "ever"]])
    made["Hidden"].sheet_state = "hidden"
    made.save(path)
    assert list(excel_rows(str(path))) == [{"id": 1, "text": "One lamp."}]
    assert list(excel_rows(f"{path}#Hidden")) == []
    book(path, May=[HEADER, [1, "One lamp."]], June=[HEADER, [2, "Two lamps."]])
    with pytest.raises(TextError, match="2 sheets with rows: 'May', 'June'") as error:
        read_rows(str(path))
    assert "'book.xlsx#May'" in error.value.hint
    assert [row.text for row in read_rows(f"{path}#June")] == ["Two lamps."]
    with pytest.raises(TextError, match="no such sheet") as error:
        read_rows(f"{path}#July")
    assert error.value.hint == "there are: 'May', 'June'"
    book(path, Empty=[])
    with pytest.raises(TextError, match="no visible sheet with a value"):
        read_rows(str(path))


def test_empty_rows_are_left_out_at_the_end_and_named_between(tmp_path):
    path = tmp_path / "a.xlsx"
    book(path, Sheet=[[], [None, None], HEADER, [1, "One lamp."], [], [3, "Three lamps."], [None, None], []])
    assert [record["id"] for record in excel_rows(str(path))] == [1, None, 3]
    with pytest.raises(TextError, match="row 2 below the header, column 'text', is empty") as error:
        read_rows(str(path))
    assert "formulas" in error.value.hint
    assert [row.empty for row in read_rows(str(path), skip_empty=True)] == [False, True, False]


def test_a_wrong_size_in_the_file_cuts_no_rows(tmp_path):
    path = tmp_path / "a.xlsx"
    book(path, Sheet=[HEADER, [1, "One lamp."], [2, "Two lamps."]])
    change(path, SHEET, lambda xml: xml.replace('ref="A1:B3"', 'ref="A1:A1"'))
    assert len(list(excel_rows(str(path)))) == 2


def change(path, part, edit):
    """Edit a part of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert edit(parts[part].decode()) != parts[part].decode()
    parts[part] = edit(parts[part].decode()).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_a_formula_has_the_value_that_was_computed(tmp_path):
    path = tmp_path / "a.xlsx"
    book(path, Sheet=[HEADER, [1, '="One "&"lamp."']])
    with pytest.raises(TextError, match="is empty") as error:
        read_rows(str(path))
    assert "formulas" in error.value.hint
    change(path, SHEET, lambda xml: re.sub(r"<v ?/>|<v></v>", "<v>One lamp.</v>", xml))
    change(path, SHEET, lambda xml: xml.replace('<c r="B2">', '<c r="B2" t="str">'))
    assert [row.text for row in read_rows(str(path))] == ["One lamp."]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["id", "text", "text"], [1, "a", "b"]], "2 columns are called 'text'"),
        (
            [["id", None, "text"], [1, "x", "a"]],
            "row 1 below the header: it has a value in column B, which has no name",
        ),
        ([["Reviews of May"], ["id", "text"], [1, "a"]], "row 1 below the header: it has a value in column B"),
    ],
)
def test_a_header_that_does_not_fit_is_an_error(tmp_path, rows, message):
    book(tmp_path / "a.xlsx", Sheet=rows)
    with pytest.raises(TextError, match=message) as error:
        read_records(str(tmp_path / "a.xlsx"))
    assert error.value.hint


def test_an_unnamed_column_without_values_is_left_out(tmp_path):
    book(tmp_path / "a.xlsx", Sheet=[["id", None, "text"], [1, None, "One lamp."]])
    assert read_records(str(tmp_path / "a.xlsx")) == [{"id": 1, "text": "One lamp."}]


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (b"One lamp.", "is not an .xlsx workbook: File is not a zip file", "misnamed"),
        (b"\xd0\xcf\x11\xe0 and more", "an old .xls, or one with a password", "without a password"),
    ],
)
def test_a_file_that_is_no_workbook_is_named(tmp_path, content, message, hint):
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(TextError, match=message) as error:
        read_records(str(tmp_path / "a.xlsx"))
    assert hint in error.value.hint


def test_a_damaged_workbook_is_named(tmp_path):
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "One lamp.")
    with pytest.raises(TextError, match=r"is not a valid \.xlsx workbook"):
        read_records(str(path))
    book(path, Sheet=[HEADER, [1, "One lamp."]])
    change(path, SHEET, lambda xml: xml[: len(xml) // 2])
    with pytest.raises(TextError, match=r"is not a valid \.xlsx workbook"):
        read_records(str(path))


def test_what_unpacks_to_far_more_than_its_size_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_MAX_RECORD_MB", "1")
    monkeypatch.setattr("openpyxl.load_workbook", lambda *_, **__: pytest.fail("it was unpacked"))
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"\0" * (2 << 20))
    with pytest.raises(TextError, match=r"unpacks to 2 MB, xl/sharedStrings.xml to more than 200 times its size"):
        list(excel_rows(str(path)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"\0" * (33 << 20))
    with pytest.raises(TextError, match="unpacks to 33 MB") as error:
        list(excel_rows(str(path)))
    assert "ZICL_MAX_RECORD_MB" in error.value.hint


def test_rows_that_a_sheet_cannot_have_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.xlsx"
    book(path, Sheet=[HEADER, [1, "One lamp."]])
    monkeypatch.setattr(excel, "_MAX_ROWS", 1000)
    change(path, SHEET, lambda xml: xml.replace('<row r="2"', '<row r="9000000000"'))
    with pytest.raises(TextError, match="more than 1,000 rows"):
        list(excel_rows(str(path)))


def test_a_sheet_that_begins_far_below_is_not_walked_through(tmp_path):
    path = tmp_path / "a.xlsx"
    book(path, Sheet=[HEADER], Data=[HEADER, [1, "One lamp."]])
    change(path, SHEET, lambda xml: xml.replace('<row r="1"', '<row r="9000000000"'))
    assert [row["text"] for row in excel_rows(str(path))] == ["One lamp."]
    with pytest.raises(TextError, match="more than 1,048,576 rows"):
        list(excel_rows(f"{path}#Sheet"))


def test_a_stray_value_far_below_the_others_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a.xlsx"
    book(path, Sheet=[HEADER, [1, "One lamp."], [2, "Two lamps."]])
    change(path, SHEET, lambda xml: xml.replace('<row r="3"', '<row r="1048576"'))
    with pytest.raises(TextError, match="row 1048575 below the header: 1,048,573 empty rows are above it"):
        list(excel_rows(str(path)))
    # Rows without a value have a height or a colour.
    change(path, SHEET, lambda xml: re.sub(r'(<row r="1048576"[^>]*>).*?</row>', r"\1</row>", xml))
    assert [row["id"] for row in excel_rows(str(path))] == [1]


def test_texts_that_cells_share_are_read_and_long_ones_refused(tmp_path, monkeypatch):
    """As Excel writes them, with parts of a text in other fonts."""
    path = tmp_path / "a.xlsx"
    book(path, Sheet=[["text"], ["first"], ["second"]])
    strings = "<si><t>_x005F_x0041_ lamp._x000D_</t></si><si><r><t>Two </t></r><r><t>lamps.</t></r></si>"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    change(
        path,
        "[Content_Types].xml",
        lambda xml: xml.replace(
            "</Types>", f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
        ),
    )
    inline = re.compile(r't="inlineStr"><is><t>(first|second)</t></is>')
    numbers = {"first": 0, "second": 1}
    change(path, SHEET, lambda xml: inline.sub(lambda found: f't="s"><v>{numbers[found[1]]}</v>', xml))

    def share(content):
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{SPREADSHEET}">{content}</sst>')

    share(strings)
    assert [row["text"] for row in excel_rows(str(path))] == ["A lamp.\r", "Two lamps."]
    change(path, "xl/sharedStrings.xml", lambda xml: xml.replace("Two", "Two" * (1 << 19)))
    monkeypatch.setenv("ZICL_MAX_RECORD_MB", "1")
    with pytest.raises(TextError, match=r"a.xlsx, row 3: it has more than 1 million characters"):
        list(excel_rows(str(path)))


def test_other_workbooks_and_a_missing_package_are_named(tmp_path, monkeypatch):
    for name in ("a.xls", "a.ods"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(TextError, match="cannot be read") as error:
            check_readable(str(tmp_path / name))
        assert "save it as .xlsx or .csv" in error.value.hint
    book(tmp_path / "a.xlsx", Sheet=[HEADER])
    monkeypatch.setattr("zicl._util.process.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="openpyxl") as missing:
        check_readable(str(tmp_path / "a.xlsx"))
    assert missing.value.hint == 'pip install "zicl[excel]"'


TEXTS = [
    "=1+1", "+49 30 1234", "-5 stars", "@home", "#N/A", "  spaced  ", "one\rtwo\r\nthree\nfour", "bell\x07",
    "_x0041_ and _x", "true", "007", "\uffff", "𝄞",
]  # fmt: skip


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "a.xlsx"
    records = [{"text": text, "n": n, "share": n / 7, "found": bool(n % 2)} for n, text in enumerate(TEXTS)]
    write_workbook(path, ["text", "n", "share", "found", "none"], records)
    assert [record["text"] for record in excel_rows(str(path))] == TEXTS
    assert [record["n"] for record in excel_rows(str(path))] == list(range(len(TEXTS)))
    from openpyxl import load_workbook

    [header, *cells] = load_workbook(path).active.iter_rows()
    assert [cell.value for cell in header] == ["text", "n", "share", "found", "none"]
    assert {row[0].data_type for row in cells} == {"s"}
    # Nor does it become a formula when the cell is edited.
    assert [row[0].quotePrefix for row in cells[:5]] == [True, True, True, True, False]
    assert {row[3].data_type for row in cells} == {"b"}


def test_numbers_that_a_cell_would_round_are_text(tmp_path):
    write_workbook(tmp_path / "a.xlsx", ["n"], [{"n": 12345678901234567890}, {"n": float("nan")}, {"n": ["a", 1]}])
    assert [record["n"] for record in excel_rows(str(tmp_path / "a.xlsx"))] == [
        "12345678901234567890",
        "NaN",
        '["a", 1]',
    ]


def test_what_does_not_fit_into_a_sheet_is_refused(monkeypatch):
    check_workbook_fits([{"text": "a" * 32_767}], Path("a.xlsx"))
    for text, length in (
        ("a" * 32_768, "32,768"),
        ("𝄞" * 16_384, "32,768"),
        ("\x07" * 5000, "35,000"),
        (["a" * 32_764], "32,768"),
    ):
        with pytest.raises(UsageError, match=f"row 2, column 'text', has {length}") as error:
            check_workbook_fits([{"text": "a"}, {"text": text}], Path("a.xlsx"))
        assert ".csv" in error.value.hint
    monkeypatch.setattr(excel, "_MAX_ROWS", 3)
    check_workbook_fits([{}] * 2, Path("a.xlsx"))
    with pytest.raises(UsageError, match="holds 2 rows below its header, and there are 3"):
        check_workbook_fits([{}] * 3, Path("a.xlsx"))
    with pytest.raises(UsageError, match="at most 16,384 columns"):
        check_workbook_columns(["a"] * 16_385, Path("a.xlsx"))


def test_the_module_needs_no_package_until_a_workbook_is_read():
    import subprocess

    script = "import sys, zicl.inputs.tables, zicl.inputs.output; print({'openpyxl', 'pyarrow'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "set()\n"
    )
