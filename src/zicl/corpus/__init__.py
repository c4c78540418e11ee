"""Raw text to sentences in order: read · split · sample · deduplicate · store."""
