"""Results by cell: a task on a table, with numbers of partitions and workers."""

from statistics import median

from scipy.optimize import nnls

from .measure import READINGS, TASKS
from .model import fit_costs


class Cells:
    """Finished measurements.

    Parameters
    ----------
    lines : list of dict
        Lines of results.
    """

    def __init__(self, lines):
        self.lines, self.alone = {}, {}
        for line in lines:
            if line["workers"]:
                cell = line["rows"], line["partitions"], line["workers"], line["task"]
                self.lines.setdefault(cell, []).append(line)
            else:
                self.alone[line["rows"], line["partitions"]] = line

    @property
    def tables(self):
        """Rows and partitions of tables, sorted."""
        return sorted({cell[:2] for cell in self.lines})

    @property
    def workers(self):
        """Numbers of workers, sorted."""
        return sorted({cell[2] for cell in self.lines})

    def has(self, *cell):
        """Return whether a cell, (rows, partitions, workers, task), is finished."""
        return cell in self.lines

    def least(self, *cell, what="seconds"):
        """Return the minimum of a cell: other work on the machine only adds time."""
        return min(line[what] for line in self.lines[cell])

    def median(self, *cell, what="seconds"):
        """Return the median of a cell."""
        return median(line[what] for line in self.lines[cell])

    def largest(self, table, what):
        """Return the largest figure of all cells of a table, given by rows, partitions and workers."""
        return max(line[what] for cell, lines in self.lines.items() if cell[:3] == table for line in lines)

    def speed_up(self, n_rows, n_partitions, task, n_workers=2):
        """Return the speed-up of several workers over one, or None."""
        one, more = ((n_rows, n_partitions, n, task) for n in (1, n_workers))
        return self.least(*one) / self.least(*more) if self.has(*one) and self.has(*more) else None

    def of_task(self, task):
        """Return (rows, partitions, workers, seconds) of all cells of a task."""
        return [(*cell[:3], self.least(*cell)) for cell in sorted(self.lines) if cell[3] == task]

    def merge_seconds(self, task):
        """Return the median seconds of a merge of two parts."""
        kinds = {READINGS[0]: ["merge summaries"], READINGS[1]: ["merge counts"]}
        wanted = kinds.get(task, ["merge summaries", "merge counts"])
        found = [sum(line["cpu"][kind] for kind in wanted) for line in self.alone.values()]
        return median(found) if found else 0.0

    def costs(self, task, is_used=lambda n_rows: True):
        """Return the costs of a task, fitted to tables of some sizes."""
        return fit_costs([cell for cell in self.of_task(task) if is_used(cell[0])], self.merge_seconds(task))

    def client_seconds(self, task):
        """Return the processor seconds of client and scheduler for every further partition."""
        cells = [cell for cell in self.lines if cell[3] == task]
        terms = [[1, cell[1]] for cell in cells]
        return float(nnls(terms, [self.median(*cell, what="client_cpu") for cell in cells])[0][1])

    def check(self, task):
        """Yield (rows, partitions, workers, measured, predicted) of the largest tables, predicted from all others.

        The others must have at least two sizes, so that the cost of a row can be fitted.
        """
        cells = self.of_task(task)
        most = max((cell[0] for cell in cells), default=0)
        if len({cell[0] for cell in cells}) < 3:
            return
        costs = self.costs(task, lambda n_rows: n_rows < most)
        for n_rows, n_partitions, n_workers, seconds in cells:
            if n_rows == most:
                yield n_rows, n_partitions, n_workers, seconds, costs.seconds(n_rows, n_partitions, n_workers)

    def errors(self, task):
        """Return the relative errors of the model on its own cells."""
        costs = self.costs(task)
        return [costs.seconds(*cell[:3]) / cell[3] - 1 for cell in self.of_task(task)]

    @property
    def tasks(self):
        """Return the tasks that are finished on some table, in their order."""
        return [task for task in TASKS if self.of_task(task)]
