"""What runs tell Prometheus: a file of the text format, since a Job is gone before it could be scraped."""
