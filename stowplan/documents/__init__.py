"""The machine-readable forms of answers, one file a kind.

All documents carry ``apiVersion`` and ``kind``; field names are camelCase; figures are not rounded.
"""
