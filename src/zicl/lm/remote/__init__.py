"""Score prompts on an inference server: prompts become requests, answers are checked, counted and cached.

In reading order: settings (address, key, limits), open, model, requests, client, budget, cache, tokenizer, probe
(which backend fits the server), backends (one file per server).

To add a server, see ``backends``.
"""
