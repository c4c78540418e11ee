"""How a server gives log-likelihoods: one file a server."""
