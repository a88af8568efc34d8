"""Pages that read well: links lead somewhere, methods and settings are all there, code that is named exists."""

import re

import pytest
from pages import PAGES, ROOT

from gamlp.methods import ADDITIONS, BASES
from gamlp.settings import Settings

LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)\s]+)\)")
METHODS = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


def anchors(page):
    """Return the headings of a page as links write them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.replace("`", "")).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"https?://|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", [*BASES, *ADDITIONS])
def test_every_method_is_described(name):
    assert f"`{name}`" in METHODS


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described(name):
    assert f"`{name}`" in METHODS.partition("## Settings")[2]


def test_code_that_is_named_is_there():
    named = re.findall(r"`(\w+/[\w/]+\.py)` (\w+)", METHODS)
    assert len(named) > 20
    for file, name in named:
        text = (ROOT / "src" / "gamlp" / file).read_text(encoding="utf-8")
        assert re.search(rf"^(?:class|def) {name}\b", text, re.MULTILINE), f"{file} {name}"


def test_the_site_lists_pages_that_are_there():
    listed = re.findall(r"- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"guide.md", "own-graph.md", "methods.md", "decisions/index.md"} <= set(listed)
    for page in listed:
        assert (ROOT / "docs" / page).exists(), page
    for decision in (ROOT / "docs" / "decisions").glob("0*.md"):
        assert f"({decision.name})" in (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
