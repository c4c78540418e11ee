"""Write a report as one HTML file: folders → tables, figures, studies, predictions → a page that needs nothing else.

Read sources (folders and texts), predictions (single predictions of stored rows), data (what the prediction browser
gets as JSON), sections (HTML of each part), page (all of it in one file); page.html, page.css, page.js and browser.html
are the template, the style, the script and the form of the prediction browser.

To add a section, write a function that returns its HTML in sections and a ``PageSection`` with it in ``make_page``.
"""
