"""What a user hands in and gets back: texts, pairs, tables, output files."""
