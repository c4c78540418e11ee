"""From a results folder to tables: read → cells → differences → tables → Markdown, CSV, LaTeX, JSON."""
