"""The page on small devices: what it has compiled is compiled here, where its compilers are."""

import doctest
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "small.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language):
    """Return the blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the files that the page makes."""
    folder = tmp_path_factory.mktemp("page")
    examples = doctest.DocTestParser().get_examples("".join(blocks("python")))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec("".join(example.source for example in examples), {})
    for block in blocks("c"):
        name = re.match(r"/\* (\w+\.c) \*/\n", block)[1]
        (folder / name).write_text(block, encoding="utf-8")
    return folder


@pytest.mark.parametrize("block", blocks("console"), ids=["computer", "part"])
def test_what_the_page_compiles_does_what_it_says(folder, block):
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:[^$].*\n)*)", block, flags=re.MULTILINE)
    assert commands
    for command, said in commands:
        program = command.split()[0]
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
        found = subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True, text=True)
        assert found.stderr == ""
        if said:
            assert found.stdout == said
        elif program.endswith("-size"):
            text, data, bss = map(int, found.stdout.splitlines()[1].split()[:3])
            assert text + data <= 8192
            assert data + bss <= 512
