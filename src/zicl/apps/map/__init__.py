"""See a pile: its texts in two dimensions, coloured by label, as one HTML file.

Read run (labelled texts → vectors → ``TextMap``), layout (vectors → two dimensions, and which texts are like no others)
and page (the HTML file: plotly's picture, filters and a table beside it).
"""
