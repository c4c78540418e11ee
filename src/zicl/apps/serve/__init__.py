"""Serve a classifier over HTTP: a page that shows why a text gets its label, and a small stable API.

In the order of a request: ``server`` (the process and its connections), ``security`` (who may ask), ``body`` (reading a
bounded body), ``app`` (addresses), ``schema`` and ``limits`` (what a request may hold), ``engine`` (from a request to
jobs), ``configurations`` (the classifier for a request's settings), ``service`` and ``queue`` (from jobs to an answer),
``jobs`` (the computation), ``long_jobs`` (what takes several turns: learning from texts, maps), ``problems`` (errors as
documents), ``page`` (the HTML page, built from ``page/``).

To add an address, write its request and response in ``schema``, a job in ``jobs`` if it computes something, a method of
``engine.Engine`` that checks the request, and a route in ``app``.
"""
