"""Coordinate descent on the hinge of margins, every objective computed anew from all rows."""


def costs_of(row_cells, magnitudes, n_classes):
    """Sums of magnitudes by class; ``row_cells`` are the first cells of what a row picks."""
    return [sum(magnitudes[first + c] for first in row_cells) for c in range(n_classes)]


def objective(cells, y, weight, margin, magnitudes, n_classes):
    total = 0
    for row_cells, label, w in zip(cells, y, weight, strict=True):
        costs = costs_of(row_cells, magnitudes, n_classes)
        cheapest = min(cost for c, cost in enumerate(costs) if c != label)
        total += w * max(0, margin + costs[label] - cheapest)
    return total


def descend(cells, y, weight, margin, families, steps, lower, upper, magnitudes, n_classes):
    """One pass through the families' first cells; the magnitudes after it, and how many have changed."""
    magnitudes, n_changed = list(magnitudes), 0
    for first in families:
        for cell in range(first, first + n_classes):
            best, chosen = objective(cells, y, weight, margin, magnitudes, n_classes), 0
            for step in steps:
                if lower[cell] <= magnitudes[cell] + step <= upper[cell]:
                    moved = [*magnitudes[:cell], magnitudes[cell] + step, *magnitudes[cell + 1 :]]
                    value = objective(cells, y, weight, margin, moved, n_classes)
                    if value < best:
                        best, chosen = value, step
            magnitudes[cell] += chosen
            n_changed += chosen != 0
    return magnitudes, n_changed
