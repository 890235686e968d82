"""Benchmarks as ratios: the peer, or the plain tool, is timed in the same run on the same machine."""
