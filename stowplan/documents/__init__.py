"""The documents that ``-o json`` and ``-o yaml`` print, one file for each kind.

All documents have ``apiVersion`` and ``kind``; field names are camelCase; figures are not rounded.
"""
