"""How long steps, trainings, imports, first fits and streams take, and how much memory."""
