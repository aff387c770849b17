"""Verdicts on rates with missing features: crossings of learners, and the best learner at half of the features."""

from benchmarks.shared.reports import markdown_table, paragraph

MARGIN, FREQUENCIES = "NB CG-MM", "NB ML"
DISCRIMINATIVE, GENERATIVE = "TAN-OMI-CR ML", "TAN-CMI ML"
IMPUTATION = "SVM, nearest"
#: The paper's data set, and its largest number of missing features with an advantage of the margin.
PAPER = ("mnist", 80)


def crossing(rates, upper, lower):
    """Return the last number of missing features up to which a learner is above another, and the next number.

    Either is None if there is no such number.
    """
    numbers = sorted(rates[upper].keys() & rates[lower].keys())
    is_above = [rates[upper][n] > rates[lower][n] for n in numbers]
    n_above = is_above.index(False) if False in is_above else len(numbers)
    return numbers[n_above - 1] if n_above else None, numbers[n_above] if n_above < len(numbers) else None


def crossing_in_words(name, rates, n_features):
    """Return in a sentence where the margin loses its advantage over frequencies on a data set."""
    last, following = crossing(rates, MARGIN, FREQUENCIES)
    if last is None:
        return f"On {name}, {MARGIN} is never above {FREQUENCIES}."
    pairs = [f"{rates[MARGIN][n]:.1f} and {rates[FREQUENCIES][n]:.1f} %" for n in (last, following) if n is not None]
    text = f"On {name}, {MARGIN} is above {FREQUENCIES} with up to {last} of {n_features} features missing ({pairs[0]})"
    return f"{text}, and below it with {following} ({pairs[1]})." if following is not None else f"{text}."


def half(rates):
    """Return the middle number of missing features."""
    numbers = sorted(next(iter(rates.values())))
    return numbers[len(numbers) // 2]


def best_of_networks(rates, n):
    """Return the learner with the highest rate that marginalizes missing features."""
    networks = {name: found[n] for name, found in rates.items() if "," not in name and n in found}
    return max(networks, key=networks.get)


def summary(sets, n_features):
    """Return the verdicts in sentences, from rates by data set, learner and number of missing features."""
    text = []
    order = sorted(sets, key=lambda name: name != PAPER[0])
    for name in (one for one in order if {MARGIN, FREQUENCIES} <= sets[one].keys()):
        text.append(crossing_in_words(name, sets[name], n_features[name]))
        if name == PAPER[0]:
            text.append(f"In the paper, the advantage on {name} holds up to about {PAPER[1]} missing features.")
    lost = {
        name: sum(sets[name][DISCRIMINATIVE][n] < sets[name][GENERATIVE][n] for n in sets[name][DISCRIMINATIVE])
        for name in order
        if {DISCRIMINATIVE, GENERATIVE} <= sets[name].keys()
    }
    if any(lost.values()):
        listed = ", ".join(f"{name} {n} of {len(sets[name][DISCRIMINATIVE])}" for name, n in lost.items())
        text.append(
            f"The paper claims that discriminative structures stay above {GENERATIVE}. This does not hold here: "
            f"{DISCRIMINATIVE} is below {GENERATIVE} for several numbers of missing features ({listed})."
        )
    elif lost:
        text.append(f"As in the paper, {DISCRIMINATIVE} is never below {GENERATIVE}.")
    best = {name: best_of_networks(sets[name], half(sets[name])) for name in order}
    listed = ", ".join(f"{name} {sets[name][one][half(sets[name])]:.1f} % ({one})" for name, one in best.items())
    text.append(
        f"With about half of the features missing, the best Bayesian networks have the following rates: {listed}."
    )
    compared = [name for name in order if half(sets[name]) in sets[name].get(IMPUTATION, {})]
    points = {
        name: sets[name][IMPUTATION][half(sets[name])] - sets[name][best[name]][half(sets[name])] for name in compared
    }
    above = [name for name in compared if points[name] > 0]
    if compared:
        names = f" ({', '.join(above)})" if above else ""
        listed = f"on {len(above)} of {len(compared)} data sets{names}"
        text.append(f"A support vector machine with imputation from the nearest rows is above these networks {listed}.")
    return paragraph(" ".join(text))


def table(sets):
    """Return rates with complete rows and with about half of the features missing."""
    learners = list(dict.fromkeys(learner for rates in sets.values() for learner in rates))
    columns = [(name, n) for name, rates in sets.items() for n in (0, half(rates))]
    rows = [
        [
            learner,
            *(f"{sets[name][learner][n]:.1f}" if n in sets[name].get(learner, {}) else "" for name, n in columns),
        ]
        for learner in learners
    ]
    return markdown_table(["learner", *(f"{name}, {n} missing" for name, n in columns)], rows)
