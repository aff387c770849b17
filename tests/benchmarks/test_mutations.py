"""The tests by which mutants are judged are where the command looks for them."""

import pytest

from benchmarks import ROOT
from benchmarks.quality import mutations


@pytest.mark.parametrize("module", mutations.TESTS)
def test_tests_of_a_module_are_found_in_their_rooms(module):
    assert list((ROOT / "tanlearn").rglob(f"{module}.py")) + list((ROOT / "baselines").glob(f"{module}.py"))
    stems = {path.stem.removeprefix("test_") for path in mutations.tests_of(module)}
    assert stems == {*mutations.TESTS[module], "defaults"}
    assert all((ROOT / path).is_file() for path in mutations.tests_of(module))


def test_a_module_without_tests_of_its_name_is_an_error():
    with pytest.raises(SystemExit, match=r"No room has test_nothing\.py"):
        mutations.tests_of("nothing")
