"""From sentences and labels to a prompt: labels · synonyms · templates · the prompt tree."""
