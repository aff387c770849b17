"""What columns of strings seem to hold, the one warning about them, and readers for their notations."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tanlearn import NaiveBayesClassifier, TableEncoder
from tanlearn.encoding.column_warnings import ColumnKindWarning, describe_format, is_suspect, remedy, suspect_formats
from tanlearn.sources.columns import read_columns
from tanlearn.sources.file_source import dates_as_days
from tanlearn.sources.notation import parse_strings
from tanlearn.sources.string_formats import detect_format, detect_number_or_date, parse_number
from tanlearn.sources.table_files import open_table

N = 60
Y = np.arange(N) % 2


@pytest.mark.parametrize(
    ("values", "kind", "mark", "decimal"),
    [
        (["1,250.50", "900"], "thousands", ",", "."), (["1'500", "12\u2019000"], "thousands", "'", "."),
        (["1 500", "2 000"], "thousands", " ", "."), (["1\u00a0500", "3"], "thousands", " ", "."),
        (["1\u202f500,5", "3"], "thousands", " ", ","), (["1.250,50", "3"], "thousands", ".", ","),
        (["12,34,567", "1"], "thousands", ",", "."), (["0,5", "1,25"], "decimal comma", "", ","),
        (["5%", "10%"], "percent", "", "."), (["$5", "$1,250.50"], "currency", ",", "."),
        (["5 EUR", "7,5 EUR"], "currency", "", ","), (["5 kg", "7.5 kg"], "unit", "", "."),
        (["(5)", "12"], "accounting", "", "."), (["\u22125", "7"], "minus sign", "", "."),
        (["08:30", "19:15"], "time", "", "."), (['="05"', '="17"'], "quoted", "", "."),
        (["01", "12"], "codes", "", "."), (["1st", "2nd"], "categories", "", "."),
        (["10-20", "20-30"], "categories", "", "."), (["12 Main St", "14 Oak Ave"], "categories", "", "."),
        (["x"], "constant", "", "."), (["4wd", "fwd", "rwd"], "categories", "", "."),
        (["<5", ">10"], "categories", "", "."), (["1A", "2B", "3C", "4D"], "categories", "", "."),
        (["23:59", "12:30 pm"], "time", "", "."), (["24:10", "25:00"], "categories", "", "."),
        (['="5', '="17'], "categories", "", "."), (['="1,5"', '="2,5"'], "quoted", "", ","),
    ],
)  # fmt: skip
def test_notations_are_recognized(values, kind, mark, decimal):
    found = detect_format(values)
    assert (found.kind, found.thousands, found.decimal) == (kind, mark, decimal)
    assert found.all_match


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (["16/07/2024", "05/01/2024"], "day first"), (["07/16/2024", "1/2/2024"], "month first"),
        (["05/06/2024", "01/02/2024"], "ambiguous"), (["16.07.2024", "01.02.2024"], "day first"),
        (["16-Jan-2024", "2-Feb-2024"], "month name"), (["2024-01-02", "2024-02-03"], "year first"),
        (["2024-01", "2024-12"], "year first"), (["2024/01", "1999/12"], "year first"),
        (["Jan 2024", "Dec 2023"], "month name"), (["jan-2024", "September 1999"], "month name"),
    ],
)  # fmt: skip
def test_dates_have_an_order(values, order):
    found = detect_format(values)
    assert (found.kind, found.order) == ("date", order)


def test_commas_before_three_digits_only_are_ambiguous():
    assert detect_format(["1,500", "2,750", "900"]).is_ambiguous
    assert not detect_format(["1,500", "2,750.5"]).is_ambiguous


def test_lonely_values_are_identifiers_or_free_text():
    assert detect_format([f"A{i}" for i in range(30)]).kind == "identifiers"
    assert detect_format([f"A{i}" for i in range(29)]).kind == "categories"
    assert detect_format([f"many words here {i}" for i in range(30)]).kind == "free text"
    assert detect_format([f"A{i}" for i in range(30)] * 2).kind == "categories"


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [("{}", "number"), ("-{}", "number"), ("00{}", "identifiers"), ("{}-", "identifiers"), ("A{}", "identifiers")],
)
def test_strings_of_digits_are_reported_where_most_rows_hold_a_value_of_their_own(pattern, kind):
    """Casting codes to strings declares them categorical; nothing can be learned from codes of single rows."""
    codes = [pattern.format(2000 + i) for i in range(N)]
    found = detect_format(codes)
    assert (found.kind, found.is_mostly_unique, is_suspect(found)) == (kind, True, True)
    few = detect_format(codes[:29])
    assert not few.is_mostly_unique
    assert not is_suspect(few)
    assert not is_suspect(detect_format(codes[:30] * 2))
    with pytest.warns(ColumnKindWarning, match="X column 'code' looks like " + kind):
        NaiveBayesClassifier().fit(pd.DataFrame({"code": codes, "x": Y ^ (np.arange(N) == 7)}), Y)


def test_numbers_among_many_other_strings_are_reported_where_values_are_mostly_unique():
    found = detect_format([f"{x}k" if x % 3 == 0 else str(x) for x in range(100, 160)])
    assert (found.kind, found.n_matching, found.others) == ("number", 40, ("102k", "105k"))
    assert is_suspect(found)


@pytest.mark.parametrize("values", [["2024-01", "2023/12"], ["Jan 2024", "december-2023"]])
def test_months_without_a_day_are_read_as_their_first_day(values):
    series = pd.Series(values)
    for order in ("day-first", "year-first"):
        read = parse_strings(series, "", ".", [], order)
        assert read.tolist() == ["2024-01-01T00:00:00", "2023-12-01T00:00:00"]
    days = eval(remedy("series", detect_format(values)).removesuffix(" reads them"), {"pd": pd, "series": series})
    assert days.tolist() == [19723.0, 19692.0]


def test_one_warning_per_fit_names_columns_and_the_code_that_reads_them():
    numbers = np.arange(N) * 37.25 + 1000
    frame = pd.DataFrame(
        {
            "price": [f"{x:,.2f}" for x in numbers],
            "part": ["unknown" if i % 9 == 0 else f"{x:.0f}%" for i, x in enumerate(numbers)],
            "town": np.where(Y, "Graz", "Linz"),
            "code": [str(i % 20) for i in range(N)],
        }
    )
    for fit in (
        lambda: TableEncoder().fit(frame, Y),
        lambda: NaiveBayesClassifier().fit(frame, Y),
        lambda: NaiveBayesClassifier().partial_fit(frame, Y, [0, 1]),
        lambda: NaiveBayesClassifier().fit_batches([(frame[:30], Y[:30]), (frame[30:], Y[30:])]),
    ):
        with pytest.warns(ColumnKindWarning) as caught:
            fit()
        (warning,) = caught
        text = str(warning.message)
        assert "2 column(s) of strings" in text
        assert """pd.to_numeric(df['price'].str.replace(",", "")) reads them""" in text
        assert "1 of 54 values are not ('unknown')" in text
        assert "'town'" not in text
        assert "'code'" not in text
    prices = pd.to_numeric(frame["price"].str.replace(",", ""))
    assert prices.tolist() == numbers.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder(discrete_features=True).fit(frame, Y)
        TableEncoder().fit(frame.astype("category"), Y)


def test_readers_convert_whole_columns_only():
    read = lambda values, *notation: parse_strings(pd.Series(values, dtype=object), *notation).tolist()  # noqa: E731
    assert read(["$1,250.50", "-$5", "($7)", "\u22122"], ",", ".", ["$", "()"], "") == [1250.5, -5.0, -7.0, -2.0]
    assert read(["1\u202f250,5 kg", "3 kg"], " ", ",", ["kg"], "") == [1250.5, 3.0]
    assert read(["1'250,5", "3"], "'", ",", [], "") == [1250.5, 3.0]
    assert read([1250, 3], ",", ".", [], "") == [1250, 3]
    assert read(["5 kg", "3 g"], "", ".", ["kg", "g", "t"], "") == ["5 kg", "3 g"]
    assert read(["$5 kg", "6 kg", "$7"], "", ".", ["$", "kg"], "") == ["$5 kg", "6 kg", "$7"]
    assert read(["1,250", "much"], ",", ".", [], "") == ["1,250", "much"]
    assert read(["1,250", "007"], ",", ".", [], "") == ["1,250", "007"]
    assert read(["12,50", "1,250"], ",", ".", [], "") == ["12,50", "1,250"]
    assert read(["05/07/2024"], "", ".", [], "day-first") == ["2024-07-05T00:00:00"]
    assert read(["05/07/2024"], "", ".", [], "month-first") == ["2024-05-07T00:00:00"]
    assert read(["05/07/2024", "07/16/2024"], "", ".", [], "day-first") == ["05/07/2024", "07/16/2024"]
    assert read(["30/02/2024"], "", ".", [], "day-first") == ["30/02/2024"]


def test_files_are_read_in_the_stated_notation(tmp_path):
    (tmp_path / "t.csv").write_text('price,day\n"1,250.50",16/07/2024\n900,05/01/2024\n')
    frame = open_table(tmp_path / "t.csv", thousands=",", dates="day-first").read()
    assert frame["price"].tolist() == [1250.5, 900.0]
    assert frame["day"].tolist() == ["2024-07-16T00:00:00", "2024-01-05T00:00:00"]
    with pytest.raises(ValueError, match="differ from the decimal mark ','"):
        open_table(tmp_path / "t.csv", thousands=",", decimal=",")


@pytest.mark.parametrize("order", ["day-first", "month-first", "year-first"])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024/05/01", "2024/05/16"], ["2024-05-01T00:00:00", "2024-05-16T00:00:00"]),
        (["2024/5/1", "2024.12.03"], ["2024-05-01T00:00:00", "2024-12-03T00:00:00"]),
        (["2024-05-01", "2024-02-03"], ["2024-05-01T00:00:00", "2024-02-03T00:00:00"]),
        (["2024-05-01T08:30:15.5", "2024-02-03 09:00"], ["2024-05-01T08:30:15.500000", "2024-02-03T09:00:00"]),
        (["2024-05-01T00:30:00+02:00", "2024-02-03T09:00Z"], ["2024-04-30T22:30:00", "2024-02-03T09:00:00"]),
        (
            ["5 Jan 2024", "May 6, 2024", "07-Feb-24"],
            ["2024-01-05T00:00:00", "2024-05-06T00:00:00", "2024-02-07T00:00:00"],
        ),
    ],
)  # fmt: skip
def test_the_order_of_dates_changes_only_dates_that_end_with_the_year(order, values, expected):
    assert parse_strings(pd.Series(values, dtype=object), "", ".", [], order).tolist() == expected


def test_every_day_of_a_year_is_read_right():
    days = pd.date_range("2024-01-01", "2024-12-31")
    expected = days.strftime("%Y-%m-%dT00:00:00").tolist()
    for pattern, order in (
        ("%d/%m/%Y", "day-first"), ("%d.%m.%y", "day-first"), ("%m-%d-%Y", "month-first"), ("%Y/%m/%d", "day-first"),
        ("%Y-%m-%d", "year-first"), ("%Y.%m.%d", "month-first"), ("%d %B %Y", "month-first"),
    ):  # fmt: skip
        written = pd.Series(days.strftime(pattern), dtype=object)
        assert parse_strings(written, "", ".", [], order).tolist() == expected, pattern


def test_iso_dates_beside_dates_with_the_day_first(tmp_path):
    (tmp_path / "t.csv").write_text("iso,day\n2024-05-01,16/07/2024\n2024-02-03,05/01/2024\n")
    frame = open_table(tmp_path / "t.csv", dates="day-first").read()
    days, names = dates_as_days(frame)
    assert names == ["iso", "day"]
    assert days["iso"].tolist() == [19844, 19756]
    assert days["day"].tolist() == [19920, 19727]


NUMBERS = [1250.5, -37.25, 8.0, 12000.0, -1.5, 640.75, 3.0, 99.25, -2048.0, 17.5, 61.0, 5.25]
MINUS = "\u2212"


def _french(x):
    return f"{x:,.2f}".replace(",", "\u202f").replace(".", ",")


REMEDIES = {
    "thousands": ([f"{x:,.2f}" for x in NUMBERS], (",", ".", [], "")),
    "typographic apostrophes": ([f"{x:,.2f}".replace(",", "\u2019") for x in NUMBERS], ("'", ".", [], "")),
    "apostrophes": ([f"{x:,.2f}".replace(",", "'") for x in NUMBERS], ("'", ".", [], "")),
    "narrow spaces": ([_french(x) for x in NUMBERS], (" ", ",", [], "")),
    "points": ([f"{x:,.2f}".translate({44: ".", 46: ","}) for x in NUMBERS], (".", ",", [], "")),
    "minus": ([f"{x}".replace("-", MINUS) for x in NUMBERS], ("", ".", [MINUS], "")),
    "minus and thousands": ([f"{x:,}".replace("-", MINUS) for x in NUMBERS], (",", ".", [MINUS], "")),
    "minus and percent": ([f"{x}%".replace("-", MINUS) for x in NUMBERS], ("", ".", ["%"], "")),
    "minus and decimal comma": (
        [f"{x}".replace("-", MINUS).replace(".", ",") for x in NUMBERS], ("", ",", [MINUS], "")
    ),
    "percent": ([f"{x} %" for x in NUMBERS], ("", ".", ["%"], "")),
    "dollars": ([f"-${-x}" if x < 0 else f"${x}" for x in NUMBERS], ("", ".", ["$"], "")),
    "dollars and spaces": ([f"- $ {-x}" if x < 0 else f"$ {x}" for x in NUMBERS], ("", ".", ["$"], "")),
    "minus and euros": ([f"{x} EUR".replace("-", MINUS) for x in NUMBERS], ("", ".", ["EUR"], "")),
    "unit": ([f"{x} kg" for x in NUMBERS], ("", ".", ["kg"], "")),
    "unit, decimal comma": ([f"{_french(x)} kg" for x in NUMBERS], (" ", ",", ["kg"], "")),
    "accounting": ([f"({-x})" if x < 0 else f"{x}" for x in NUMBERS], ("", ".", ["()"], "")),
    "accounting, dollars": ([f"(${-x:,})" if x < 0 else f"${x:,}" for x in NUMBERS], (",", ".", ["$", "()"], "")),
    "dollars, accounting": ([f"$({-x})" if x < 0 else f"${x}" for x in NUMBERS], ("", ".", ["$", "()"], "")),
    "accounting, spaces": ([f"($ {-x} )" if x < 0 else f"$ {x}" for x in NUMBERS], ("", ".", ["$", "()"], "")),
    "accounting, percent": ([f"({-x}%)" if x < 0 else f"{x}%" for x in NUMBERS], ("", ".", ["%", "()"], "")),
    "percent, accounting": ([f"({-x})%" if x < 0 else f"{x}%" for x in NUMBERS], ("", ".", ["%", "()"], "")),
}  # fmt: skip
DATES = {
    "day first": (["16/07/2024", "05/01/2024"], "day-first", ["2024-07-16", "2024-01-05"]),
    "month first": (["07/16/2024", "01/05/2024"], "month-first", ["2024-07-16", "2024-01-05"]),
    "separators": (["16/07/2024", "05.01.2024", "06-01-2024"], "day-first", ["2024-07-16", "2024-01-05", "2024-01-06"]),
    "some times": (["16/07/2024 12:00", "05/01/2024"], "day-first", ["2024-07-16T12:00", "2024-01-05"]),
    "year first": (["2024/05/01", "2024.05.16 06:00"], "year-first", ["2024-05-01", "2024-05-16T06:00"]),
    "names": (["16 Jan 2024", "Feb 3, 2024"], "day-first", ["2024-01-16", "2024-02-03"]),
    "zones": (["2024-05-01T12:00+02:00", "2024-05-16T06:00Z"], "year-first", ["2024-05-01T10:00", "2024-05-16T06:00"]),
}


@pytest.mark.parametrize("case", REMEDIES)
def test_the_remedy_in_python_and_the_options_read_the_same_numbers(case):
    values, notation = REMEDIES[case]
    found = detect_format(values)
    assert found.all_match
    assert is_suspect(found)
    assert set(found.signs) - {MINUS} == set(notation[2]) - {MINUS}
    assert (found.thousands, found.decimal) == notation[:2]
    column = pd.Series(values)
    code = remedy("column", found).split(" reads them")[0]
    assert eval(code, {"pd": pd, "column": column}).tolist() == NUMBERS
    assert parse_strings(column, *notation).tolist() == NUMBERS


@pytest.mark.parametrize("case", DATES)
def test_the_remedy_in_python_and_the_options_read_the_same_dates(case):
    values, order, expected = DATES[case]
    column = pd.Series(values)
    days = [pd.Timestamp(one).timestamp() / 86_400 for one in expected]
    code = remedy("column", detect_format(values)).split(" reads them")[0]
    assert eval(code, {"pd": pd, "column": column}).tolist() == days
    read, _ = dates_as_days(pd.DataFrame({"day": parse_strings(column, "", ".", [], order)}))
    assert read["day"].tolist() == days


QUOTED = {
    "fractions": (['="0.5"', '="1.5"'], [0.5, 1.5]),
    "decimal commas": (['="-0,5"', ' ="2,5" '], [-0.5, 2.5]),
    "thousands": (['="1,500.5"', '="2"'], [1500.5, 2.0]),
    "minus signs": ([f'="{MINUS}5"', '="7"'], [-5.0, 7.0]),
    "narrow spaces": (['="1\u202f500"', '="2"'], [1500.0, 2.0]),
    "some without quotes": (['="5"', "7", "?"], [5.0, 7.0, None]),
    "zero": (['="0"', '="10"'], [0.0, 10.0]),
    "leading zeros": (['="05"', '="17"'], ["05", "17"]),
    "late leading zeros": (['="10"', '="20"', '="05"'], ["10", "20", "05"]),
    "words": (['="Graz"', '="New York"'], ["Graz", "New York"]),
    "a late word": (['="100"', '="200"', '="none"'], ["100", "200", "none"]),
}


@pytest.mark.parametrize("case", QUOTED)
def test_quoted_values_are_read_as_numbers_only_if_all_of_them_are_numbers(case):
    values, expected = QUOTED[case]
    found = detect_format(values)
    assert (found.kind, is_suspect(found)) == ("quoted", True)
    code = remedy("column", found)
    ending = " removes the quotes" if isinstance(expected[0], str) else " reads them"
    assert code.endswith(ending)
    found = eval(code.removesuffix(ending), {"pd": pd, "column": pd.Series(values)})
    assert [None if value != value else value for value in found.tolist()] == expected


@pytest.mark.parametrize(
    ("values", "hours"),
    [
        (["08:30", "19:15:20"], [8, 19]), (["12:05 am", "12:30 pm", "23:59"], [0, 12, 23]),
        (["10:20:30,5", "11:20:30.5"], [10, 11]),
        (["1:05 a.m.", "2:10 P.M.", "3:10:20.5 pm.", "4:15 P.m"], [1, 14, 15, 16]),
        (["08:30", "noon", "5:10 p.m."], [8, None, 17]),
    ],
)  # fmt: skip
def test_the_remedy_for_times_reads_the_hour(values, hours):
    found = detect_format(values)
    assert (found.kind, is_suspect(found)) == ("time", True)
    code = remedy("column", found).removesuffix(" reads the hour")
    found = eval(code, {"pd": pd, "column": pd.Series(values)}).tolist()
    assert [None if hour != hour else hour for hour in found] == hours


def test_both_remedies_for_ambiguous_dates_are_right():
    values = ["05/06/2024", "01/02/2024"]
    reading = remedy("column", detect_format(values))
    code, _, more = reading.partition(" reads them with the day first, ")
    assert more == "dayfirst=False with the month first"
    for own, expected in (
        (code, ["2024-06-05", "2024-02-01"]),
        (code.replace("dayfirst=True", "dayfirst=False"), ["2024-05-06", "2024-01-02"]),
    ):
        days = eval(own, {"pd": pd, "column": pd.Series(values)})
        assert days.tolist() == [pd.Timestamp(day).timestamp() / 86_400 for day in expected]


@pytest.mark.parametrize("pattern", ["{}", "${}", "{} kg", "({})", '="{}"', MINUS + "{}"])
def test_both_remedies_for_ambiguous_commas_are_right(pattern):
    values = [pattern.format(number) for number in ("1,500", "22,750", "1,125")]
    sign = -1 if pattern in ("({})", MINUS + "{}") else 1
    reading = remedy("column", detect_format(values))
    thousands, _, fractions = reading.partition(" reads them with commas between thousands, ")
    expected = [1500, 22750, 1125]
    for code, factor in ((thousands, 1), (fractions.removesuffix(" with decimal commas"), 1000)):
        found = eval(code, {"pd": pd, "column": pd.Series(values)}).tolist()
        assert found == [sign * number / factor for number in expected]


def test_kinds_are_described_in_words():
    words = {
        "numbers as strings": ["1.5", "2.5", "3"],
        "numbers with commas between thousands": ["1,250.5", "3"],
        "numbers with points between thousands": ["1.250,5", "3"],
        "numbers with apostrophes between thousands": ["1'250.5", "3"],
        "numbers with spaces between thousands": ["1 250.5", "3"],
        "numbers whose commas are thousands separators or decimal marks": ["1,250", "3"],
        "numbers with decimal commas": ["1,25", "3"],
        "numbers with the minus sign U+2212": [f"{MINUS}1.5", "3"],
        "numbers with negative numbers in parentheses": ["(1.5)", "3"],
        "percentages": ["1.5%", "3%"],
        "amounts with a currency ('$')": ["$1.5", "$3"],
        "numbers with a unit ('kg')": ["1.5 kg", "3 kg"],
        "values quoted for Excel": ['="1.5"', '="3"'],
        "times of day": ["8:30", "9:15"],
        "dates (day first)": ["16/07/2024", "17/07/2024"],
    }
    for text, values in words.items():
        assert describe_format(detect_format(values)) == f"{text}, such as {values[0]!r} and {values[1]!r}"
    many = ["8:30", "9:15", "10:45", "soon", "later"]
    assert describe_format(detect_format(many)) == (
        "times of day, such as '8:30' and '9:15', but 2 of 5 values are not ('soon' and 'later')"
    )
    for text, pattern in (("identifiers", "A{}"), ("free text", "many words here {}")):
        values = [pattern.format(i) for i in range(1000, 2234)]
        assert describe_format(detect_format(values)) == (
            f"{text}: 1,234 rows hold a unique value, such as {values[0]!r} and {values[1]!r}"
        )
        assert remedy("column", detect_format(values)).startswith("leave it out")


def test_ten_columns_are_named_and_the_others_are_counted():
    X = pd.DataFrame({f"c{j}": [f"{i + j}%" for i in range(N)] for j in range(13)})
    for n, more in ((10, None), (13, " There are 3 more. ")):
        with pytest.warns(ColumnKindWarning) as caught:
            TableEncoder().fit(X.iloc[:, :n], Y)
        text = str(caught[0].message)
        assert text.startswith(f"{n} column(s) of strings")
        assert [f"'c{j}'" in text for j in range(n)] == [j < 10 for j in range(n)]
        assert more in text if more else "more" not in text


def test_columns_of_arrays_have_remedies_by_number():
    X = np.array([["a", f"{i}%"] for i in range(N)], dtype=object)
    with pytest.warns(ColumnKindWarning, match=r"X column 1 looks like percentages") as caught:
        TableEncoder().fit(X, Y)
    code = str(caught[0].message).split("values are not")[0].split(": ")[1].split(" reads them")[0]
    assert eval(code, {"pd": pd, "X": X}).tolist() == list(range(N))


def test_values_of_rows_of_weight_zero_are_ignored():
    values = np.array([f"{i}%" for i in range(N)] + ["soon"] * 80, dtype=object)
    y, weights = np.arange(len(values)) % 2, np.arange(len(values)) < N
    for X in (values[:, np.newaxis], pd.DataFrame({"x": values})):
        with pytest.warns(ColumnKindWarning, match="percentages, such as '0%' and '1%': "):
            NaiveBayesClassifier().fit(X, y, weights)


def test_only_undeclared_strings_are_examined():
    percentages = pd.Series([f"{i}%" for i in range(N)])
    X = pd.DataFrame({"declared": percentages.astype("category"), "bytes": percentages.str.encode("utf-8")})
    X = X.assign(none=pd.Series([None] * N, dtype=object), number=np.arange(N) % 7)
    assert suspect_formats(read_columns(X)) == []
    assert [place for place, _ in suspect_formats(read_columns(X.assign(plain=percentages)))] == ["X column 'plain'"]


@pytest.mark.parametrize("pattern", ["{}%", "$ {}", "0,{}"])
def test_numbers_of_more_than_ten_values_are_suspect(pattern):
    for n in (10, 11):
        assert is_suspect(detect_format([pattern.format(i) for i in range(21, 21 + n)])) is (n > 10)


def test_plain_numbers_are_suspect_with_fractions_or_with_few_other_strings():
    integers = [str(i) for i in range(40)]
    assert not is_suspect(detect_format(integers, [2] * 40))
    for others, expected in ((["?"], True), (["?", "x"], True), (["?", "x", "-"], False)):
        values = integers + others
        assert is_suspect(detect_format(values, [2] * len(values))) is expected
    assert is_suspect(detect_format([*integers[:20], "?", "x"], [2] * 22))  # two are few in any column
    fractions = [f"{i}.5" for i in range(40)]
    assert is_suspect(detect_format(fractions, [2] * 40))
    for n, n_others, expected in ((95, 5, True), (94, 6, False), (108, 6, False), (114, 6, True)):
        values = [str(i) for i in range(n)] + list("abcdef")[:n_others]  # at most a twentieth
        assert is_suspect(detect_format(values, [2] * len(values))) is expected


@pytest.mark.parametrize(
    ("values", "symbols"),
    [
        (["9.7 kg", "8549 g"], ["kg", "g"]), (["$5", "\u20ac6"], ["$", "\u20ac"]), (["1A", "2B"], ["A", "B"]),
        (["5%", "6\u2030"], ["%", "\u2030"]), (["($5)", "6 EUR"], ["$", "EUR", "()"]),
    ],
)  # fmt: skip
def test_columns_with_two_units_are_never_stripped(values, symbols):
    found = detect_format(values)
    assert found.has_several_units
    assert remedy("column", found) == "convert them to one unit first"
    assert parse_strings(pd.Series(values), "", ".", symbols, "").tolist() == values


def test_units_of_earlier_rows_are_remembered(tmp_path):
    (tmp_path / "t.csv").write_text("w,y\n9.7 kg,a\n5 kg,b\n8549 g,a\n3 g,b\n")
    table = open_table(tmp_path / "t.csv", symbols=["kg", "g"])
    first, second = table.batches(2)
    assert first["w"].tolist() == [9.7, 5.0]
    assert second["w"].tolist() == ["8549 g", "3 g"]


def test_the_target_is_never_converted(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n5%,5%\n6%,10%\n")
    frame = open_table(tmp_path / "t.csv", symbols=["%"]).read(target="y")
    assert frame["x"].tolist() == [5.0, 6.0]
    assert frame["y"].tolist() == ["5%", "10%"]


@pytest.mark.parametrize(
    "values", [["2", "3", "4", "5more"], ["4cyl", "6cyl", "8cyl"], ["1x", "2x"], ["0%", "5%"], ["0,5", "1,5"], ["$5"]]
)
def test_few_numbers_are_categories(values):
    assert not is_suspect(detect_format(values))


def test_a_unit_is_carried_by_most_values():
    assert detect_format([*map(str, range(20)), "20more"]).kind == "number"
    assert detect_format([*map(str, range(9)), *(f"{x} kg" for x in range(10, 20))]).kind == "unit"


def test_a_single_value_has_a_notation():
    assert detect_number_or_date(["$5"]).signs == ("$",)
    assert detect_number_or_date(["1,5"]).decimal == ","
    assert detect_number_or_date(["?"]) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,23,456", 123456.0),
        ("1,234,567", 1234567.0),
        ("12,34", None),
        ("1,2,345", None),
        ("\u22121,234.5", -1234.5),
        ("007", None),
    ],
)
def test_numbers_are_grouped_by_thousands_or_in_indian_groups(text, number):
    assert parse_number(text, ",", ".") == number
