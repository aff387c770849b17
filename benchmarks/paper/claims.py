"""Claims in the text of a paper, and whether the results here confirm them."""

from typing import NamedTuple

from benchmarks.shared.reports import markdown_table


class Claim(NamedTuple):
    """A claim, the evidence here, and whether it holds; None if runs are not complete, or not sufficient."""

    claim: str
    evidence: str
    holds: bool | None

    def row(self):
        """Return cells of a table."""
        verdict = {None: "open", True: "yes", False: "**no**"}[self.holds]
        return [self.claim, verdict, self.evidence]


def claims_table(found, evidence):
    """Return the table of claims with a heading for the evidence."""
    return markdown_table(["claim", "holds", evidence], [one.row() for one in found], left=range(3))


def claims_in_words(found):
    """Return the number of claims that hold, and quote those that do not; empty without decided claims."""
    decided = [one for one in found if one.holds is not None]
    failed = [f'"{one.claim}"' for one in decided if not one.holds]
    if not decided:
        return ""
    text = f"The results here confirm {len(decided) - len(failed)} of {len(decided)} claims of the paper"
    if not failed:
        return f"{text}."
    return f"{text}. They do not confirm {'this claim' if len(failed) == 1 else 'these claims'}: {'; '.join(failed)}."
