"""The papers that are reproduced: a command each, with data, learners, results, report and figures in its folder."""
