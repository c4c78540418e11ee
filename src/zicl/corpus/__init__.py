"""Turn raw text into sentences on disk: find sources · read · split · sample · deduplicate · store.

In reading order: sources, reader, splitter, sample, dedup, shards, builder, store, subset, update.

To add a sentence splitter, write a function that returns a ``Splitter`` and name it in ``splitter.SPLITTERS``, or in an
entry point of the group ``zicl.splitters``. To read another file format, see ``zicl.inputs``.
"""
