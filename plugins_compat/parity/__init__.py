"""Parity: recorded decisions run through our framework, and what comes out differently."""
