"""From texts to the sentences of a corpus that are near them: embed, index, search, choose.

onnx         encoders as ONNX files, without torch
encoder      texts to unit vectors, by any encoder
kinds        the files of a vector index: exact, or compressed
search       the nearest vectors of a query
builder      the index of a corpus
index        a corpus opened for search
concat       two indexes as one
from_texts   an index of texts in memory
strategies/  which sentences become demonstrations
clusters     similar inputs that share demonstrations
update       add and remove domains, change the kind of index
tune         measure searches and keep the fastest

To add a retrieval strategy, see ``strategies``. To add a kind of index, name it in ``kinds.Kind``, write and read it in
``kinds``, search it in ``search``, and give it a row of parameters in ``tune.parameter_grid``.
"""
