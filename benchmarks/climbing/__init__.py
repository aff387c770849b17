"""Hill climbing and related searches over structures, compared with each other and with gradient learning."""
