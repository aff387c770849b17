"""The page about the distance of margin searches from the optimum."""

import pytest

from benchmarks import DATA
from benchmarks.quality import exact_margin


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project")
def test_page_has_a_row_for_each_set(tmp_path):
    exact_margin.main(["--sets", "iris", "balance-scale", "--output", str(tmp_path)])
    text = (tmp_path / "exact_margin.md").read_text(encoding="utf-8")
    assert "proves the forest of maximum margin on 2 of 2 data sets" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| balance-scale | 4 / 625 / 3 |")]
    greedy, order, _, _, exact, status, _ = row.strip("| ").split(" | ")[2:]
    assert exact == f"**{exact.strip('*')}**"
    assert float(greedy) < float(exact.strip("*"))  # greedy search is not exact here
    assert order == exact
    assert status == "proved"
