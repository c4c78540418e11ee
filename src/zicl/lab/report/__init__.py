"""Turn results folders into a report: rows → cells → calibration, comparisons → tables, figures → text or HTML.

Read cells (one method on one task), collect (results folders to cells), batch_calibration (of stored scores),
statistics (paired bootstrap), layout (a table and its formats), paper (the paper's numbers), reliability (metrics and
diagrams of probabilities), label_shares (scores under other label shares), tables (all tables), build (the report),
plotting (figures and styles), study_summary (what a study writes for the report), html/ (the page).

To add a table, write a function in tables that returns a ``Table`` and list it in ``side_tables``: every format,
HTML included, then has it. ``text_table`` is enough for a table with one text per cell.
"""
