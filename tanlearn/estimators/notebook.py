"""HTML representation of fitted classifiers in notebooks: scikit-learn's diagram and a summary of the model."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn import get_config

from tanlearn.files.description import feature_names
from tanlearn.structures.drawings import structure_svg

__all__ = ["fitted_html", "mime_bundle"]

#: Maximum number of class names that are shown.
_MOST = 10


def mime_bundle(model: Any) -> dict[str, str]:
    """Return the representations of an estimator that Jupyter displays."""
    bundle = {"text/plain": repr(model)}
    if get_config()["display"] == "diagram":
        bundle["text/html"] = model._repr_html_inner()
    return bundle


def fitted_html(model: Any) -> str:
    """Return an HTML summary of a fitted classifier: structure, classes, size and training."""
    if not hasattr(model, "classes_") or not hasattr(model, "encoder_"):
        return ""
    classes = [str(name) for name in model.classes_.tolist()]
    more = f" and {len(classes) - _MOST} more" if len(classes) > _MOST else ""
    lines = {"classes": ", ".join(classes[:_MOST]) + more, "features": f"{model.n_features_in_:,}"}
    picture = ""
    if hasattr(model, "structure_"):
        lines["edges between features"] = f"{model.structure_.n_edges:,}"
        structure = model.structure_
        order = structure.order if structure.is_acyclic else None
        picture = structure_svg(structure.parents, order, feature_names(model)) if structure.n_edges else ""
    if hasattr(model, "tables_"):
        lines["parameters"] = f"{model.tables_.n_parameters:,}"
        lines["calibration"] = f"{model.calibration_!r}"
    if hasattr(model, "loss_"):
        lines["loss"] = repr(model.loss_)
    if epochs := model.learning_history().get("training"):
        last = epochs[-1]
        error = "" if last.validation_error is None else f", validation error {100 * last.validation_error:.2f} %"
        lines["training"] = f"{last.epoch} epochs, loss {last.loss:.4g}{error}"
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in lines.items())
    return f'<details><summary>Fitted model</summary><table style="text-align:left">{rows}</table>{picture}</details>'
