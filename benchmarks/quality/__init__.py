"""Quality of learners, defaults, calibration and rules of encoding, and of the tests."""
