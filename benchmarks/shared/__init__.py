"""Code that several benchmarks share: the published data, files of results, command lines and parts of reports."""
