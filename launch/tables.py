"""Put the tables of docs/figures into the pages that show them.

A comment in a page names the file, and the table under it is replaced:  <!-- docs/figures/illustrative/final.md -->
"""

import re
from pathlib import Path

PAGES = (
    "README.md", "docs/results.md", "docs/illustrative.md", "docs/performance.md", "docs/e3b.md", "docs/explorers.md",
    "docs/four_rooms.md",
    "docs/any_library.md",
)  # fmt: skip
SHOWN = re.compile(r"(<!-- (docs/figures/\S+\.md) -->\n)((?:\|.*\n)*)")


def with_tables(text: str) -> str:
    return SHOWN.sub(lambda found: found[1] + Path(found[2]).read_text(), text)


if __name__ == "__main__":
    for page in map(Path, PAGES):
        page.write_text(with_tables(page.read_text()))
