"""Helpers without knowledge of the method: settings come in, files, random numbers and messages go out.

In reading order: files, random, registry, validation, progress, cache, process, html, catalog.

To add a helper, put it into the file whose docstring it fits; one that only one folder uses belongs to that folder.
To add a model or word list to the catalog, add a table to ``data/catalog.toml``, which explains its keys.
"""
