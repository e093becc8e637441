"""Bazel's persistent worker protocol: many actions by one process, each in a process of its own."""
