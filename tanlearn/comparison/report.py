"""Report of a comparison: tables of means with tests, as Markdown, LaTeX or comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.comparison.report_formats import ReportTable, Section, as_latex, as_markdown
from tanlearn.comparison.results import CellResult, Measure

__all__ = ["REPORT_FORMATS", "write_report"]

#: Formats of reports. The first one is the default.
REPORT_FORMATS = ("markdown", "latex", "csv")

#: A :class:`~tanlearn.comparison.Comparison`. It cannot be imported here, because its module imports this one.
Comparison: TypeAlias = Any

#: Field of a learner that has finished but does not have the measure.
WITHOUT_MEASURE = "none"
#: Maximum number of tests on single data sets that are listed. If there are more, only their number is reported.
MOST_TESTS = 60
#: Minimum number of data sets with which the signed-ranks test can be significant at the level of 5 %.
ENOUGH_DATASETS = 6


def write_report(
    comparison: Comparison, measure: Measure, reference: str | None, alpha: float, rope: float | None, form: str
) -> str:
    """Return the report of a comparison. By default, the reference is the learner with the best mean rank."""
    base = reference or _default_reference(comparison, measure)
    if form == "csv":
        return _as_csv(comparison, measure, base, alpha)
    n, k = len(comparison.datasets), len(comparison.learners)
    title = f"Comparison of {_count(k, 'learner')} on {_count(n, 'data set')}"
    sections = [Section(title, text=_protocol(comparison), level=1), _means(comparison, measure, alpha)]
    if k > 1 and base is not None:
        sections.append(_single_tests(comparison, measure, base, alpha))
        if n > 1:
            over_all = _tests_over_datasets(comparison, measure, base, alpha, measure.rope if rope is None else rope)
            sections.append(over_all)
    sections.append(_costs(comparison))
    sections += _failures(comparison.failures)
    return (as_latex if form == "latex" else as_markdown)(sections)


def _as_csv(comparison: Comparison, measure: Measure, reference: str | None, alpha: float) -> str:
    """Return one row per data set and learner: mean, standard deviation, and difference from the reference."""
    tests = {} if reference is None else {(t.dataset, t.first): t for t in comparison.paired(reference, measure.name)}
    best = _best(comparison, measure, alpha)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    fields = ("difference", "low", "high", "p_value", "p_holm")
    writer.writerow(["dataset", "learner", "measure", "n_folds", "mean", "std", "is_best", "reference", *fields])
    for dataset in comparison.datasets:
        for learner, values in zip(comparison.learners, comparison.values(dataset, measure.name), strict=True):
            own = values[~np.isnan(values)]
            mean, std = (own.mean() if len(own) else "", np.std(own, ddof=1) if len(own) > 1 else "")
            test = tests.get((dataset, learner))
            found = [""] * len(fields) if test is None else [getattr(test, name) for name in fields]
            is_best = int(learner in best[dataset])
            writer.writerow([dataset, learner, measure.name, len(own), mean, std, is_best, reference or "", *found])
    return lines.getvalue()


def _count(n: int, noun: str) -> str:
    """Return a number followed by its noun, in the plural if necessary."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _protocol(comparison: Comparison) -> str:
    """Describe the splits of the data sets, and the versions of the packages."""
    found: dict[str, list[str]] = {}
    for dataset in comparison.datasets:
        cells = [cell for cell in comparison.cells if cell.dataset == dataset]
        n_repeats, n_folds = len({cell.repeat for cell in cells}), cells[0].n_folds
        folds = "1 split" if n_folds == 1 else f"{n_folds} folds"
        found.setdefault(f"{_count(n_repeats, 'repeat')} of {folds}", []).append(dataset)
    parts = [how if len(found) == 1 else f"{', '.join(names)}: {how}" for how, names in found.items()]
    return f"{'; '.join(parts)}. {'; '.join(sorted({cell.versions for cell in comparison.cells}))}."


def _means(comparison: Comparison, measure: Measure, alpha: float) -> Section:
    """Return the table of means. Learners that are not significantly worse than the best are in bold."""
    best, means = _best(comparison, measure, alpha), comparison.mean(measure.name)
    rows = []
    for dataset, own in zip(comparison.datasets, means, strict=True):
        values = comparison.values(dataset, measure.name)
        first = next(cell for cell in comparison.cells if cell.dataset == dataset)
        fields = []
        for learner, mean, of_splits in zip(comparison.learners, own.tolist(), values, strict=True):
            if np.isnan(mean):
                fields.append(_incomplete(comparison, dataset, learner, of_splits))
                continue
            spread = f" ± {np.std(of_splits, ddof=1):.{measure.digits}f}" if len(of_splits) > 1 else ""
            text = f"{mean:,.{measure.digits}f}{spread}"
            fields.append(f"**{text}**" if learner in best[dataset] else text)
        rows.append([dataset, f"{first.n_train + first.n_test:,}", *fields])
    notes = []
    common = _common_datasets(comparison, measure.name)
    if len(common) > 1:
        of_common = means[[name in common for name in comparison.datasets]].mean(axis=0).tolist()
        label = "mean" if len(common) == len(rows) else f"mean of {len(common)}"
        rows.append([label, "", *(_number(mean, measure.digits) for mean in of_common)])
        if label != "mean":
            notes.append(f"The row {label!r} averages the data sets on which all learners with results are complete.")
    if any(best.values()):
        notes.append(
            f"Bold: not significantly worse than the {'largest' if measure.is_score else 'smallest'} mean of the data "
            f"set (resampled t-test of Nadeau and Bengio, after Holm's correction over the learners, level {alpha:g})."
        )
    if any(len(comparison.values(dataset).T) > 1 for dataset in comparison.datasets):
        notes.append("± is the standard deviation over folds.")
    if any(comparison.values(dataset).shape[1] < 2 for dataset in comparison.datasets):
        notes.append("A data set with a single split has no test and no bold.")
    fields = [field for row in rows for field in row[2:]]
    if any(field.startswith("(") for field in fields):
        notes.append("In parentheses: number of folds with a result, if the learner has failed or is not finished.")
    if WITHOUT_MEASURE in fields:
        notes.append(f"{WITHOUT_MEASURE}: the learner has run, but has no {measure.label}.")
    title = measure.title[0].upper() + measure.title[1:]
    return Section(title, ReportTable(["data set", "rows", *comparison.learners], rows), " ".join(notes))


def _best(comparison: Comparison, measure: Measure, alpha: float) -> dict[str, list[str]]:
    """Return the learners to print in bold on each data set: all that are not significantly worse than the best."""
    n_results = (~np.isnan(comparison.mean(measure.name))).sum(axis=1).tolist()
    best = comparison.best(measure.name, alpha)
    return {name: best[name] if n > 1 else [] for name, n in zip(comparison.datasets, n_results, strict=True)}


def _incomplete(comparison: Comparison, dataset: str, learner: str, of_splits: FloatArray) -> str:
    """Return the field of a learner that has no mean: its number of results, or a sign that it lacks the measure."""
    own = [cell for cell in comparison.cells if (cell.dataset, cell.learner) == (dataset, learner)]
    n_done = int((~np.isnan(of_splits)).sum())
    if n_done == 0 and any(cell.failure is None for cell in own):
        return WITHOUT_MEASURE
    return f"({n_done} of {len(of_splits)})"


def _default_reference(comparison: Comparison, measure: Measure) -> str | None:
    """Return the learner with the best mean rank among the learners with the most complete data sets, or None."""
    from tanlearn._rank_tests import ranks_of

    values = measure.better(comparison.mean(measure.name))
    n_complete = (~np.isnan(values)).sum(axis=0)
    if not n_complete.size:
        return None
    complete = np.flatnonzero(n_complete == n_complete.max()).tolist()
    if n_complete.max() < len(values):
        return str(comparison.learners[complete[0]])
    return comparison.learners[complete[int(ranks_of(values[:, complete]).mean(axis=0).argmin())]]


def _single_tests(comparison: Comparison, measure: Measure, reference: str, alpha: float) -> Section:
    """Return the tests against the reference on single data sets."""
    tests = comparison.paired(reference, measure.name)
    title = f"Differences to {reference} on single data sets"
    if not tests:
        return Section(title, text=f"There are no tests: {_why_no_test(comparison, measure, reference)}")
    if len(tests) > MOST_TESTS:
        text = (
            f"There are {len(tests)} tests. `tanlearn report --print csv` prints them, and "
            f"`Comparison.paired({reference!r})` returns them."
        )
        return Section(title, text=text)
    digits = measure.digits
    rows = []
    for test in tests:
        n_splits = comparison.values(test.dataset, measure.name).shape[1]
        name = test.first if test.n_splits == n_splits else f"{test.first} ({test.n_splits} of {n_splits} folds)"
        verdict = "not significant"
        if test.p_holm < alpha:
            verdict = "better" if (test.difference < 0) != measure.is_score else "worse"
        interval = f"{test.low:+.{digits}f} to {test.high:+.{digits}f}"
        difference, p_values = f"{test.difference:+.{digits}f}", (_p(test.p_value), _p(test.p_holm))
        rows.append([test.dataset, name, difference, interval, *p_values, verdict])
    header = ["data set", "learner", "difference", "95 % interval", "p", "p (Holm)", "verdict"]
    note = (
        f"Difference: mean of the learner minus mean of {reference}. p: resampled t-test of Nadeau and "
        f"Bengio. p (Holm): corrected for the learners of the data set. Verdict: at the level {alpha:g} after "
        f"Holm's correction."
    )
    return Section(title, ReportTable(header, rows, 2), note)


def _why_no_test(comparison: Comparison, measure: Measure, reference: str) -> str:
    """Explain why no data set has two folds with results of both the reference and another learner."""
    values = {dataset: comparison.values(dataset, measure.name) for dataset in comparison.datasets}
    if all(of_splits.shape[1] < 2 for of_splits in values.values()):
        return (
            "each data set has a single split. Use folds or repeats. (McNemar's test of a single split needs "
            "predictions of single rows, which are not stored.)"
        )
    base = comparison.learners.index(reference)
    if all(np.isnan(of_splits[base]).all() for of_splits in values.values()):
        return f"{reference} has no {measure.label} on any data set."
    return f"no other learner has the {measure.label} in two folds in which {reference} has it."


def _tests_over_datasets(
    comparison: Comparison, measure: Measure, reference: str, alpha: float, rope: float
) -> Section:
    """Return ranks, wins, signed ranks and probabilities over all data sets."""
    notes, bayes = [], {}
    is_enough = len(comparison.datasets) >= ENOUGH_DATASETS
    try:
        tests = comparison.equivalence(reference, rope, measure.name) if is_enough else []
        bayes = {test.first: test for test in tests if test.n_datasets >= ENOUGH_DATASETS}
    except ImportError as error:
        notes.append(f"{str(error)[0].upper()}{str(error)[1:]}.")
    wilcoxon = {test.first: test for test in comparison.signed_ranks(reference, measure.name)}
    counts = comparison.win_tie_loss(measure.name, alpha)
    mean_ranks: dict[str, float] = {}
    try:
        ranks = comparison.ranks(measure.name, alpha)
        mean_ranks = dict(zip(ranks.learners, ranks.mean_ranks.tolist(), strict=True))
        left_out = f", without {', '.join(ranks.left_out)}" if ranks.left_out else ""
        p = "" if np.isnan(ranks.p_value) else f" Friedman test (Iman and Davenport): {_p_value(ranks.p_value)}."
        notes.insert(
            0,
            f"Mean ranks over {len(ranks.datasets)} data sets{left_out}.{p} Critical difference (Nemenyi, level "
            f"{alpha:g}): {ranks.critical_difference:.2f}.",
        )
        if ranks.learners_left_out:
            notes.insert(1, f"Not ranked, without a complete data set: {', '.join(ranks.learners_left_out)}.")
    except ValueError as error:
        notes.insert(0, f"{str(error)[0].upper()}{str(error)[1:]}")
    base = comparison.learners.index(reference)
    rows = []
    for i, learner in sorted(enumerate(comparison.learners), key=lambda own: (mean_ranks.get(own[1], 0.0), own[0])):
        of_learner = [int(part[i, base]) for part in (counts.wins, counts.ties, counts.losses)]
        wins = "/".join(map(str, of_learner)) if any(of_learner) else ""
        row = [learner, f"{mean_ranks[learner]:.2f}" if learner in mean_ranks else ""]
        test, probabilities = wilcoxon.get(learner), bayes.get(learner)
        row += (
            [wins, str(test.n_datasets), f"{test.difference:+.{measure.digits}f}", _p(test.p_holm)]
            if test
            else [wins, "", "", ""]
        )
        if bayes:
            row += (
                [f"{part:.2f}" for part in (probabilities.better, probabilities.equal, probabilities.worse)]
                if probabilities
                else [""] * 3
            )
        rows.append(row)
    header = ["learner", "mean rank", "win/tie/loss", "data sets", "difference", "p (Holm)"]
    header += [f"P(better than {reference})", f"P(within {rope:g})", f"P(worse than {reference})"] if bayes else []
    notes.append(
        f"All other learners are compared with {reference}. Win/tie/loss: numbers of data sets, by the t-tests of "
        f"single data sets at the level {alpha:g} after Holm's correction. Difference: mean over the data sets on "
        f"which both learners are complete. p: Wilcoxon signed ranks over these data sets, after Holm's correction. "
        f"Data sets: their number."
    )
    if bayes:
        notes.append(f"P: probabilities of the Bayesian signed-ranks test; differences up to {rope:g} count as equal.")
    if not is_enough:
        notes.append(
            f"With {len(comparison.datasets)} data sets, the signed-ranks test cannot be significant at 5 %, and "
            f"the Bayesian test is left out. Both need at least {ENOUGH_DATASETS} data sets."
        )
    return Section("All data sets", ReportTable(header, rows), " ".join(notes))


def _costs(comparison: Comparison) -> Section:
    """Return the times, model sizes and training effort of the learners."""
    fields = {
        "fit [s]": ("fit_seconds", 2),
        "predict [us/row]": ("predict_microseconds", 1),
        "parameters": ("n_parameters", 0),
        "arcs": ("n_edges", 1),
        "evaluations": ("n_evaluations", 0),
        "iterations": ("n_iterations", 0),
    }
    common = _common_datasets(comparison, "fit_seconds")
    are_all = len(common) == len(comparison.datasets)
    rows = []
    for learner in comparison.learners:
        cells = [cell for cell in comparison.cells if cell.learner == learner and cell.failure is None]
        cells = [cell for cell in cells if cell.dataset in common] if common else cells
        number = [] if are_all else [str(len({cell.dataset for cell in cells}))]
        rows.append([learner, *number, *(_average(cells, name, digits) for name, digits in fields.values())])
    where = f"the {_count(len(common), 'data set')} on which all learners with results are complete"
    if are_all:
        where = "the data sets"
    elif not common:
        where = "the data sets on which the learner has results, which differ between learners"
    note = (
        f"Means over {where}; the result of a data set is the mean over its folds. Evaluations: number of structures "
        "that the search scored. Arcs: edges between features."
    )
    header = ["learner", *fields] if are_all else ["learner", "data sets", *fields]
    return Section("Costs", ReportTable(header, rows), note)


def _common_datasets(comparison: Comparison, measure: str) -> list[str]:
    """Return the data sets on which all learners are complete. Learners that are complete on none are ignored."""
    means = comparison.mean(measure)
    of_learners = means[:, ~np.isnan(means).all(axis=0)]
    is_common = ~np.isnan(of_learners).any(axis=1) & (of_learners.shape[1] > 0)
    return [name for name, own in zip(comparison.datasets, is_common.tolist(), strict=True) if own]


def _average(cells: Sequence[CellResult], name: str, digits: int) -> str:
    """Average a field over the cells of each data set, then over data sets. Without values, return an empty string."""
    by_dataset: dict[str, list[float]] = {}
    for cell in cells:
        value: Any = getattr(cell, name)
        if value is not None:
            by_dataset.setdefault(cell.dataset, []).append(value)
    return _number(float(np.mean([np.mean(own) for own in by_dataset.values()])), digits) if by_dataset else ""


def _failures(failed: Sequence[CellResult]) -> list[Section]:
    """Return the number of failures and the first reason, for each learner and data set."""
    if not failed:
        return []
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for cell in failed:
        groups.setdefault((cell.dataset, cell.learner), []).append(cell)
    items = [f"{', '.join(key)} ({_count(len(own), 'fold')}): {own[0].failure}" for key, own in groups.items()]
    return [Section("Failures", items=items)]


def _number(value: float, digits: int) -> str:
    """Return a number with thousands separators, or an empty string for NaN."""
    return "" if np.isnan(value) else f"{value:,.{digits}f}"


def _p_value(value: float) -> str:
    """Return "p =" or "p <" with the value."""
    return "p < 0.001" if value < 0.001 else f"p = {_p(value)}"


def _p(value: float) -> str:
    """Return a p-value with three decimals."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
