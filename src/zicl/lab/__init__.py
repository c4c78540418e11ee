"""What a researcher needs: the paper's evaluation, studies and reports."""
