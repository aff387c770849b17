"""All learners beside forests, boosting, logistic regression and support vector machines, on all raw sets."""
