"""
Explaining a prediction
=======================

Plot the contribution of each feature to the log odds of two classes. The contributions add up exactly to the
prediction.
"""

from sklearn.datasets import load_wine

from tanlearn import TANClassifier
from tanlearn.displays import ExplanationDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
y = y.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
model = TANClassifier(n_epochs=60, random_state=0).fit(X[::2], y[::2])

# %%
# The row is the one with the least certain prediction:

rows = X[1::2]
doubtful = model.predict_proba(rows).max(axis=1).argmin()
row = rows[doubtful : doubtful + 1]
display = ExplanationDisplay.from_estimator(model, row)
display.figure_.suptitle("One wine: contributions of its values to the log odds")

# %%
# The bars add up to the predicted log odds:

log_p = dict(zip(model.classes_, model.predict_log_proba(row)[0], strict=True))
print(sum(length for _, length in display.bars_), log_p[display.target] - log_p[display.against])

# %%
# ``explain_frame`` returns the contributions as a pandas frame:

print(model.explain_frame(row, against=display.against).round(2).to_string())

# %%
# The evidence is contradictory. Flavanoids and hue are evidence for Barbera and against Barolo, and the ratio
# od280/od315 is evidence for Barolo and against Barbera. These contributions nearly cancel each other: the log odds of
# Barbera against Barolo are 0.34, so the prediction is uncertain.
