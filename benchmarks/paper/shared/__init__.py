"""What commands of several papers share: splits of the data, files of results, parts of reports."""
