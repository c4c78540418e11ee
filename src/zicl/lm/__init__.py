"""Score prompts: load a model, pack prompts that share a prefix, run them in batches, return log-likelihoods.

In reading order: base (the interface), load, gguf, weights, devices, model_cache; then a model on this machine: hf,
tokenizer, packing, forward, attention, batching; its attention heads: heads, layer_cache; a model on a server: remote.

To add a kind of model, implement ``base.LanguageModel`` in a file of this folder and return it from ``load.load_lm``.
To give access to the attention heads of another architecture, add a line to ``heads.FAMILIES``.
"""
