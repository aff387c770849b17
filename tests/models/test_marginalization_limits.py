"""The limit of operations: the default, the user's, and what is none."""

import pytest

from tanlearn.models.marginalization_limits import most_operations, name_others


@pytest.mark.parametrize(("given", "limit"), [(None, 1e9), ("5e10", 5e10), ("0", 0), ("inf", 2.0**62)])
def test_the_limit_is_that_of_the_environment(given, limit, monkeypatch):
    monkeypatch.delenv("TANLEARN_MAX_ROW_OPERATIONS", raising=False)
    if given is not None:
        monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", given)
    assert most_operations() == limit


@pytest.mark.parametrize("given", ["much", "", "-1", "nan"])
def test_other_limits_are_refused(given, monkeypatch):
    monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", given)
    with pytest.raises(
        ValueError, match=f"TANLEARN_MAX_ROW_OPERATIONS must be a number of at least 0, or inf, got '{given}'"
    ):
        most_operations()


def test_many_rows_are_counted():
    assert name_others(range(4)) == " The same holds for rows 1, 2, 3."
    assert name_others(range(15)) == " The same holds for rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4 more."
