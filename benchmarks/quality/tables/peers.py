"""Peers with defaults and with settings chosen on folds, each with the encoding that suits it best in plain use.

Forests and linear models get one column per category, boosting categorical columns. Peers that accept missing values
get them; the others get medians and an indicator column.
"""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from ..runs import N_FOLDS
from .tuning import PATIENCE, CalibratedSVC, EarlyStopped, Tuned

N_TREES = 300
#: Columns of more categories are numbered for forests, as 66 columns of one feature would crowd out the others.
MOST_COLUMNS = 32

LEAVES, SHARES = [1, 2, 5], ["sqrt", 0.3]
#: Trees of the forests that choose settings.
N_CHEAPER = 100
GRIDS = {
    "LightGBM": {"learning_rate": [0.05, 0.1], "num_leaves": [7, 31]},
    "XGBoost": {"learning_rate": [0.05, 0.3], "max_depth": [3, 6]},
    "HistGradientBoosting": {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [7, 31]},
    "LogisticRegression": {"model__C": [0.01, 0.1, 1.0, 10.0, 100.0]},
    "SVM": {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01, 0.1]},
}


def categorical(table):
    """Return the numbers of categorical columns, those of few categories first."""
    columns = np.flatnonzero(table.is_categorical)
    is_few = np.array([table.X.iloc[:, j].nunique() <= MOST_COLUMNS for j in columns], bool)
    return list(columns[is_few]), list(columns[~is_few])


def one_hot():
    """Return the encoder with one column per category, and one for missing values."""
    return OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False)


def numbered():
    """Return the encoder that numbers categories."""
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)


def for_trees(table, is_numbered=False):
    """Return the encoding step for trees."""
    few, many = categorical(table)
    if not few and not many:
        return "passthrough"
    steps = [("few", numbered() if is_numbered else one_hot(), few), ("many", numbered(), many)]
    return ColumnTransformer(steps, remainder="passthrough")


def for_sums(table):
    """Return the encoding step for linear models and distances."""
    few, many = categorical(table)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    return ColumnTransformer(
        [("numbers", numbers, list(np.flatnonzero(~table.is_categorical))), ("categories", one_hot(), few + many)]
    )


def forest(kind, table, seed, jobs, is_numbered=False):
    """Return a forest."""
    model = kind(n_estimators=N_TREES, random_state=seed, n_jobs=jobs)
    return Pipeline([("columns", for_trees(table, is_numbered)), ("model", model)])


def tuned_forest(kind, table, seed, jobs):
    """Return a forest that chooses the size of leaves, the features per split, and the encoding of categories."""
    grid = {"model__min_samples_leaf": LEAVES, "model__max_features": SHARES}
    if table.is_categorical.any():
        grid["columns__few"] = [one_hot(), numbered()]
    return Tuned(forest(kind, table, seed, jobs), grid, {"model__n_estimators": N_CHEAPER}, seed)


def hist_gradient_boosting(table, seed, jobs):
    """Return scikit-learn's boosting, without early stopping for rare classes, which it cannot hold out."""
    early_stopping = "auto" if np.unique(table.y, return_counts=True)[1].min() > N_FOLDS else False
    return HistGradientBoostingClassifier(random_state=seed, early_stopping=early_stopping)


def hist_gradient_boosting_of(table, seed, jobs):
    """Return scikit-learn's boosting with a given number of trees."""
    return HistGradientBoostingClassifier(random_state=seed, early_stopping=False)


def lightgbm(table, seed, jobs):
    """Return LightGBM's classifier."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=jobs, verbose=-1)


def xgboost(table, seed, jobs):
    """Return XGBoost's classifier."""
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=jobs, enable_categorical=True)


def as_strings(X):
    """Return a frame whose categories are strings, also missing ones; arrays are returned unchanged."""
    if not hasattr(X, "iloc"):
        return X
    return X.assign(**{name: list(map(str, X[name])) for name in X.columns[X.dtypes == "category"]})


def of_strings(model):
    """Return a model that gets categories as strings."""
    return Pipeline([("columns", FunctionTransformer(as_strings)), ("model", model)])


def catboost(table, seed, jobs):
    """Return CatBoost's classifier, which needs categories as strings."""
    from catboost import CatBoostClassifier

    columns = np.flatnonzero(table.is_categorical).tolist()
    model = CatBoostClassifier(
        cat_features=columns, random_seed=seed, thread_count=jobs, verbose=False, allow_writing_files=False
    )
    return of_strings(model)


def explainable_boosting(table, seed, jobs):
    """Return InterpretML's explainable boosting machine."""
    from interpret.glassbox import ExplainableBoostingClassifier

    kinds = ["nominal" if is_categorical else "continuous" for is_categorical in table.is_categorical]
    model = ExplainableBoostingClassifier(feature_types=kinds, random_state=seed, n_jobs=jobs)
    return of_strings(model)


def chimera_boost(table, seed, jobs):
    """Return ChimeraBoost's classifier, which needs categories as strings."""
    from chimeraboost import ChimeraBoostClassifier

    columns = np.flatnonzero(table.is_categorical).tolist()
    model = ChimeraBoostClassifier(cat_features=columns, random_state=seed, thread_count=jobs, ensemble_n_jobs=1)
    return of_strings(model)


def perpetual(table, seed, jobs):
    """Return Perpetual's classifier, which finds categories in the types of the columns."""
    from perpetual.sklearn import PerpetualClassifier

    return PerpetualClassifier(num_threads=jobs, seed=seed)


def hist_until(model, X, y, X_held_out, y_held_out):
    """Fit with early stopping on held-out rows; return the number of trees and the log loss."""
    model.set_params(early_stopping=True, n_iter_no_change=PATIENCE)
    scores = model.fit(X, y, X_val=X_held_out, y_val=y_held_out).validation_score_
    return scores.argmax(), -scores.max()  # the first one is that of no tree


def lightgbm_until(model, X, y, X_held_out, y_held_out):
    """Fit with early stopping on held-out rows; return the number of trees and the log loss."""
    from lightgbm import early_stopping

    stop = early_stopping(PATIENCE, verbose=False)
    model.fit(X, y, eval_set=[(X_held_out, y_held_out)], callbacks=[stop])
    (loss,) = model.best_score_["valid_0"].values()
    return model.best_iteration_, loss


def xgboost_until(model, X, y, X_held_out, y_held_out):
    """Fit with early stopping on held-out rows; return the number of trees and the log loss."""
    model.set_params(early_stopping_rounds=PATIENCE).fit(X, y, eval_set=[(X_held_out, y_held_out)], verbose=False)
    return model.best_iteration + 1, model.best_score


def tuned_boosting(name, make, fit_until, trees, table, seed, jobs):
    """Return boosting that chooses among its grid, and stops early."""
    return EarlyStopped(make(table, seed, jobs), GRIDS[name], fit_until, trees, seed)


def logistic_regression(table, seed, jobs):
    """Return a logistic regression."""
    return Pipeline([("columns", for_sums(table)), ("model", LogisticRegression(max_iter=1000, random_state=seed))])


def tuned_logistic_regression(table, seed, jobs):
    """Return a logistic regression that chooses its ridge."""
    return Tuned(logistic_regression(table, seed, jobs), GRIDS["LogisticRegression"], random_state=seed)


def support_vector_machine(table, seed, jobs):
    """Return a support vector machine with radial basis functions, which chooses width and penalty."""
    return Pipeline([("columns", for_sums(table)), ("model", CalibratedSVC(GRIDS["SVM"], seed))])
