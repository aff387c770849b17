"""The summary: verdicts, the best learners, the data sets kept apart, and the judged learner against each peer."""

from benchmarks.shared.reports import folded, joined, markdown_table, paragraph, write_sections
from benchmarks.shared.versions import made_by

from .details import write_details
from .diagram import draw
from .duels import against_peers, duel
from .learners import LEARNERS, TUNED
from .method import how_peers_are_run, introduction
from .outcomes import MEASURES, Outcomes
from .rankings import pools, ranking_apart, ranks_and_means, slow, taking_part, unlimited
from .sets import LATER
from .time_plot import NAMED, draw_times
from .verdicts import is_default_peer, judge, ranks_of

#: Number of learners in the first table.
N_BEST = 12
#: Measures for which the best peer is named.
RIVALS = "error", "log_loss"


def in_ranks(outcomes, learners, judged, where):
    """Return the mean ranks of a learner and of the best peers in sentences."""
    ranks = {measure: ranks_of(outcomes, learners, measure, "all sets") for measure in MEASURES}
    better = {measure: sum(rank < own[judged] for rank in own.values()) for measure, own in ranks.items()}
    words = {n: f"{n} {'is' if n == 1 else 'are'} better" if n else "the best" for n in better.values()}
    own = ", ".join(
        f"{ranks[measure][judged]:.2f} by {title} ({words[better[measure]]})" for measure, title in MEASURES.items()
    )
    if not any(better.values()):
        own_ranks = joined([f"{own[judged]:.2f}" for own in ranks.values()])
        titles = joined([*MEASURES.values()])
        text = f"{where}, {judged} is the best of {len(learners)} learners by {titles} (mean ranks {own_ranks})."
    else:
        text = f"{where}, the mean ranks of {judged} among {len(learners)} learners are {own}."
    if any(not LEARNERS[name].is_ours for name in learners):
        text += f" {best_peers(ranks)}"
    return text


def all_ranks(outcomes, learners, judged, where, of_these):
    """Return the mean ranks in paragraphs: among some learners, and with slow ones on the sets they have finished."""
    found = [in_ranks(outcomes, learners, judged, where.format(len(outcomes.common(learners))))]
    others = slow(outcomes, learners)
    n_common = len(outcomes.common([*learners, *others]))
    if others and n_common:
        names = joined([f'"{name}"' for name in others])
        where = f"{of_these.format(n_common)} that {names} also completed"
        found.append(in_ranks(outcomes, [*learners, *others], judged, where))
    return found


def best_peers(ranks):
    """Return the peers with the lowest mean ranks in a sentence."""
    peers = {
        measure: {name: r for name, r in ranks[measure].items() if not LEARNERS[name].is_ours} for measure in RIVALS
    }
    best = {measure: min(own, key=own.get) for measure, own in peers.items()}
    words = [f"by {MEASURES[measure]} ({peers[measure][name]:.2f})" for measure, name in best.items()]
    if len({*best.values()}) == 1:
        return f'The best peer {" and ".join(words)} is "{best[RIVALS[0]]}".'
    named = (f'"{name}" {own}' for name, own in zip(best.values(), words, strict=True))
    return f"The best peers are {' and '.join(named)}."


def fit_seconds(outcomes, learner, learners):
    """Return the mean processor seconds of a fit over the sets that some learners have finished."""
    lines = [line for name, seeds in outcomes.common(learners).items() for line in outcomes.lines(name, learner, seeds)]
    return sum(line.get("fit_seconds", 0.0) for line in lines) / len(lines)


def summary(outcomes, kept_apart, judged):
    """Return the verdicts in sentences."""
    learners = unlimited(outcomes)
    if judged not in learners or not outcomes.common(learners):
        return paragraph(f"{judged} has not finished enough data sets for a verdict.")
    text = all_ranks(outcomes, learners, judged, "On {} data sets", "On the {} of these data sets")
    apart = taking_part(kept_apart, lambda one: True)
    if judged in apart:
        where = "On {} data sets that were not used to choose any setting", "On the {} of these data sets"
        text += all_ranks(kept_apart, apart, judged, *where)
    ranks = ranks_of(outcomes, learners, "log_loss", "all sets")
    tuned = [name for name in ranks if not LEARNERS[name].is_ours and name.endswith(TUNED)]
    if tuned:
        best = min(tuned, key=ranks.get)
        won, undecided, lost = duel(outcomes, judged, best, "log_loss").split(" ")[0].split("/")
        text.append(
            f'Compared with "{best}", the best tuned peer by log loss, {judged} has a significantly lower log loss on '
            f"{won} data sets and a significantly higher log loss on {lost}. On {undecided} data sets, the difference "
            "is not significant."
        )
    defaults = [name for name in learners if is_default_peer(name)]
    if defaults:
        seconds = {name: fit_seconds(outcomes, name, learners) for name in (judged, *defaults)}
        fastest = "LightGBM" if "LightGBM" in seconds else min(defaults, key=seconds.get)
        text.append(
            f"The cost is time. Fitting {judged} takes {seconds[judged]:.1f} processor seconds on average, "
            f"{seconds[judged] / seconds[fastest]:.0f} times as long as {fastest} with defaults "
            f"({seconds[fastest]:.2f} s)."
        )
    return "\n\n".join(paragraph(one) for one in text)


def best_learners(outcomes):
    """Return the table of the best learners."""
    learners = unlimited(outcomes)
    text = f"""The table shows the best {min(N_BEST, len(learners))} of {len(learners)} learners by log loss, over the
    {len(outcomes.common(learners))} data sets that all of them have finished. Errors are in percent, log losses in
    nats. Some settings of tanlearn were chosen on part of these data (see below)."""
    return f"{paragraph(text)}\n\n{ranks_and_means(outcomes, learners, N_BEST)}"


def sections(lines, outcomes, kept_apart, judged, folder):
    """Yield the sections, and draw the picture."""
    yield "# Comparison with other libraries"
    yield summary(outcomes, kept_apart, judged)
    yield paragraph("""All ranks, pairs of learners and times are on [a separate page](tables_details.md), and the
    results of each data set are in [a CSV file](tables.csv).""")
    found = pools(outcomes)
    if found:
        learners = next(iter(found.values()))
        draw(folder / "tables.png", learners, [LEARNERS[name].is_ours for name in learners], outcomes)
        yield "![Mean ranks of learners; bars connect learners without significant differences](tables.png)"
        yield paragraph("""Learners of tanlearn are blue. A bar connects learners if no two of them differ significantly
        by Wilcoxon's signed-rank test at 5 %, with Holm's correction for all pairs.""")
        yield f"## The best learners\n\n{best_learners(outcomes)}"
    if kept_apart.sets:
        yield f"## Data sets kept apart\n\n{ranking_apart(kept_apart, N_BEST)}"
        yield "![Mean ranks by log loss over mean fitting times of all learners](tables_times.png)"
        everyone, apart = unlimited(outcomes), taking_part(kept_apart, lambda one: True)
        groups = {
            f"{len(everyone)} learners on {len(outcomes.common(everyone))} data sets": (outcomes, everyone, NAMED),
            f"{len(apart)} learners on {len(kept_apart.common(apart))} sets kept apart": (kept_apart, apart, apart),
        }
        draw_times(folder / "tables_times.png", groups)
    duels = against_peers(outcomes, judged)
    yield folded(f"{judged} against each peer", duels) if duels else ""
    verdicts = [one.row() for one in judge(outcomes, unlimited(outcomes), judged)]
    table = markdown_table(["target", "data sets", "result", "met"], verdicts, left=range(4))
    yield folded(f"Targets for {judged}", table)
    yield "## How it was measured"
    yield folded("Data sets and measures", introduction(lines, outcomes))
    yield folded("Encodings and settings of the other learners", how_peers_are_run())
    yield made_by(lines, "benchmarks.quality.tables run", "benchmarks.quality.tables report")


def write_report(lines, judged, folder):
    """Write the summary and its picture, with verdicts on one learner, the page of details, and the CSV file."""
    outcomes = Outcomes([line for line in lines if line["set"] not in LATER])
    if not outcomes.sets:
        raise SystemExit("nothing is finished: the command run does it.")
    kept_apart = Outcomes([line for line in lines if line["set"] in LATER])
    write_sections(folder / "tables.md", sections(lines, outcomes, kept_apart, judged, folder))
    write_details(outcomes, kept_apart, folder)
