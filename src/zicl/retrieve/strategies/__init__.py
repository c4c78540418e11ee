"""Choose the sentences that become demonstrations of an input.

base        what a retriever is given and returns, and the table RETRIEVERS
nearest     the sentences most similar to the input
diverse     a random choice of many nearest sentences
physical    the sentences next to the nearest ones: the paper's choice
random      the same random sentences for all inputs; random sentences of the nearest domains

To add a strategy, write one file with a subclass of ``Retriever`` and add one line to ``RETRIEVERS``. Nothing else in
``retrieve`` lists the names: code that depends on a strategy reads its traits (``draws``, ``shared``,
``needs_neighbours``). An installed package adds one with an entry point of the group ``zicl.retrievers``.
"""
