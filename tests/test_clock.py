"""The clock of histories stands still while kernels are compiled."""

import numba
from numba.core import event

from tanlearn import _clock


def fake_times(monkeypatch, times):
    monkeypatch.setattr(_clock.time, "perf_counter", iter(times).__next__)


def test_the_clock_stands_still_during_compilation(monkeypatch):
    compilation = _clock._Compilation()
    start, end = (event.Event("numba:compiler_lock", status) for status in event.EventStatus)
    fake_times(monkeypatch, [10.0, 12.0, 15.0, 16.0, 20.0, 21.0, 21.5])
    assert compilation.clock() == 10
    compilation.notify(start)  # at 12
    assert compilation.clock() == 12
    compilation.notify(start)  # a second thread, or a kernel that calls another one
    compilation.notify(end)
    assert compilation.clock() == 12
    compilation.notify(end)  # at 15
    assert compilation.clock() == 16 - 3
    compilation.notify(start)  # at 20
    compilation.notify(end)  # at 21
    assert compilation.clock() == 21.5 - 3 - 1


def test_numba_reports_its_compilation(monkeypatch):
    found = []
    monkeypatch.setattr(_clock._COMPILATION, "on_start", lambda event: found.append("start"))
    monkeypatch.setattr(_clock._COMPILATION, "on_end", lambda event: found.append("end"))
    assert numba.njit(lambda x: x + 1)(1) == 2
    assert found[0] == "start"
    assert found.count("start") == found.count("end")
    found.clear()
    _clock.learning_clock()
    assert found == []
