"""Tests of what runs in and beside a cluster: manifests, images, releases."""
