"""Small helpers that know nothing of zicl: files, randomness, names, progress, validation."""
