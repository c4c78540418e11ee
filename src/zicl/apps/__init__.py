"""What is built on a classifier: diagnose it, run it on a cluster, distil it, check it, serve it.

Read suggest (a diagnosis without labels), cluster (Ray), distill (a small fast classifier), check (accuracy from a
small labelled sample), serve (an HTTP server with a page), demo (the example data).

To add an application, make a folder here that imports from ``zicl.classifier`` and below, and give it a command in
``zicl.cli``.
"""
