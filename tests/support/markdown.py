"""Tables of Markdown as tests read them."""


def rows_of(text):
    """Return the cells of the rows of all tables in a text, headers included."""
    lines = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in cells] for cells in lines if not cells[0].strip().startswith("---")]
