"""How learning from partitions scales with rows, partitions and workers."""
