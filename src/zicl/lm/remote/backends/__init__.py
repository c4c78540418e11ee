"""Get log-likelihoods from a server: send the tokens of a request, find their numbers in the answer, check them.

In reading order: base (the interface, and checks of answers), trial (checks before use), vllm, sglang, echo (any server
that repeats the prompt).

To add a server, write one file with a function ``open_…(client, model, tokenizer)`` that returns a ``LogprobBackend``
or raises ``ServerError`` if the server does not speak it, and add the function to the table ``BACKENDS`` in
``zicl.lm.remote.probe``.
"""
