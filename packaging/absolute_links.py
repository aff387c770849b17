"""Make the links of the README absolute, and add the addresses of the project, before a release is built.

The repository contains no address of its own, so relative links lead nowhere on a package index.
"""

import argparse
import re
from pathlib import Path

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")
BADGE = "[![tests]({0}/actions/workflows/tests.yml/badge.svg)]({0}/actions/workflows/tests.yml)"
BEFORE_ADDRESSES = "license_expression = "


def readme_with_links(text, repository, tag):
    """Return the README with a badge of the tests and with links to the files of a tag; pictures are raw files."""

    def replace(match):
        kind = "raw" if match[1] else "blob"
        return f"{match[1]}[{match[2]}]({repository}/{kind}/{tag}/{match[3]})"

    title, end, rest = text.partition("\n\n")
    return f"{title}{end}{BADGE.format(repository)}\n\n{LINK.sub(replace, rest)}"


def settings_with_addresses(text, repository, tag, site=""):
    """Return the settings of the package with the addresses that a package index shows."""
    addresses = {
        "Documentation": site,
        "Source": repository,
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    listed = "".join(f"    {name} = {address}\n" for name, address in addresses.items() if address)
    before, found, after = text.partition(BEFORE_ADDRESSES)
    if not found or "project_urls" in text:
        raise ValueError(f"setup.cfg must contain {BEFORE_ADDRESSES!r}, and no project_urls.")
    return f"{before}project_urls =\n{listed}{found}{after}"


def main(argv=None):
    """Rewrite README.md and setup.cfg of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repository", help="address, such as https://github.com/owner/tanlearn")
    parser.add_argument("tag", help="tag of the release, such as v1.2.3")
    parser.add_argument("--site", default="", help="address of the documentation")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1], help="folder of both files")
    arguments = parser.parse_args(argv)
    repository, tag = arguments.repository.rstrip("/"), arguments.tag
    readme, settings = arguments.folder / "README.md", arguments.folder / "setup.cfg"
    readme.write_text(readme_with_links(readme.read_text("utf-8"), repository, tag), "utf-8")
    settings.write_text(settings_with_addresses(settings.read_text("utf-8"), repository, tag, arguments.site), "utf-8")


if __name__ == "__main__":
    main()
