"""Check what a user passes in, and write what a user gets back: file → rows → checked texts → output file.

In reading order: pair, texts, files, tables, output.

To add a file format, name it in ``files.FORMATS``, read it in ``tables.read_records``, and in
``zicl.corpus.reader`` if a corpus can be built from it.
"""
