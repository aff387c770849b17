"""
BayesForest and other learners
==============================

Compare the forest and the ensemble of tanlearn with LightGBM, CatBoost and EBM, all with their defaults. The six data
sets have the most rows among the data sets of the comparison that were not used to choose any setting, and that all
five learners completed. Values are means over five folds, repeated with two seeds, from the stored results of the
:doc:`comparison </benchmarks/tables>`.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tanlearn.displays import CriticalDifferenceDisplay

learners = {
    "BayesForest": "#0072b2",
    "BayesEnsemble": "#56b4e9",
    "LightGBM": "#d55e00",
    "CatBoost": "#e69f00",
    "EBM": "#999999",
}
results = pd.read_csv(Path("..", "..", "benchmarks", "quality", "tables.csv"))
results = results[(results["group"] == "kept apart") & results["learner"].isin(learners)]
complete = results.groupby("set")["learner"].nunique() == len(learners)
sizes = results.groupby("set")["rows"].first()[complete]
names = sizes.nlargest(6).index

figure, axes = plt.subplots(3, 1, figsize=(7, 8), layout="constrained", sharex=True)
figure.suptitle("Six data sets that were not used to choose any setting")
titles = {
    "error": "error [%]",
    "log_loss": "log loss, difference\nfrom LightGBM [nats]",
    "fit_seconds": "time of a fit [s]",
}
positions = np.arange(len(names))
for axis, (column, title) in zip(axes, titles.items(), strict=True):
    values = results.pivot_table(index="set", columns="learner", values=column).loc[names]
    if column == "log_loss":
        values = values.sub(values["LightGBM"], axis=0)
        axis.axhline(0, color="black", linewidth=0.8)
    for k, (learner, color) in enumerate(learners.items()):
        axis.bar(positions + 0.16 * (k - 2), values[learner], 0.15, color=color, label=learner)
    axis.set(ylabel=title)
axes[2].set_yscale("log")
axes[2].set_xticks(positions, [f"{name}\n{sizes[name]:,} rows" for name in names], fontsize="small")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

# %%
# The learners differ little on these data sets. EBM has the lowest log loss on three of them, CatBoost on two, and the
# ensemble on one. LightGBM with defaults has the highest log loss on all six but wvs, where CatBoost has the highest.
# LightGBM fits within 0.2 s, the forest and the ensemble within 3 s, CatBoost within 5 s, and EBM within 18 s.
#
# Six data sets cannot rank learners. The next figure shows mean ranks by log loss on all 15 data sets that were not
# used to choose any setting and that all five learners completed:

losses = results.pivot_table(index="set", columns="learner", values="log_loss").loc[complete[complete].index]
figure, axis = plt.subplots(figsize=(7, 2.5), layout="constrained")
figure.suptitle(f"Mean ranks by log loss on {len(losses)} data sets")
CriticalDifferenceDisplay({learner: losses[learner] for learner in learners}).plot(axis)

# %%
# The ensemble has the lowest mean rank. It is significantly better than CatBoost and LightGBM. Its differences from EBM
# and from the forest are not significant. The :doc:`comparison on 39 data sets </benchmarks/tables>` also contains
# tuned learners.
