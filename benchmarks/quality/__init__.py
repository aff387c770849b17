"""How well: learners beside each other, defaults, calibration, rules of encoding; and whether tests notice a change."""
