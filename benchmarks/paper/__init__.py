"""The reproduced papers: one command per paper, with data, learners, results, report and figures in its folder."""
