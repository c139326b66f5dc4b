"""Reports as one HTML file that needs no network: an answer as a page of sections, and the page as HTML."""
