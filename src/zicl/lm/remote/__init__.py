"""A language model behind an inference server: asked for log-likelihoods, checked, remembered."""
