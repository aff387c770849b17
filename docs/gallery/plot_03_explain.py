"""
Why this class?
===============

The log odds of two classes are a sum over features, exactly. A waterfall shows which values have moved it, and
where.
"""

from sklearn.datasets import load_wine

from tanlearn import TANClassifier
from tanlearn.displays import ExplanationDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
y = y.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
model = TANClassifier(n_epochs=60, random_state=0).fit(X[::2], y[::2])

# %%
# The row that the model is least sure of:

rows = X[1::2]
doubtful = model.predict_proba(rows).max(axis=1).argmin()
row = rows[doubtful : doubtful + 1]
display = ExplanationDisplay.from_estimator(model, row)
display.figure_.suptitle("One wine: what its values add to the log odds")

# %%
# The bars add up to what the model predicts:

log_p = dict(zip(model.classes_, model.predict_log_proba(row)[0], strict=True))
print(sum(length for _, length in display.bars_), log_p[display.target] - log_p[display.against])

# %%
# The same as a frame, with names:

print(model.explain_frame(row, against=display.against).round(2).to_string())
