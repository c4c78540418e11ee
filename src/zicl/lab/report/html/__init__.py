"""The report as one HTML file: folders → tables, figures, studies, predictions → a page that needs nothing else."""
