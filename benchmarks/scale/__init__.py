"""Learning from tables of any size: equal to learning in memory, and how fast."""
