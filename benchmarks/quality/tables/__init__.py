"""All learners, compared with forests, boosting, logistic regression and support vector machines, on all raw sets."""
