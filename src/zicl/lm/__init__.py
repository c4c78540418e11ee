"""From a prompt to log-likelihoods: the backends."""
