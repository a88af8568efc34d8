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


def test_the_site_has_every_page():
    listed = set(re.findall(r"- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if (ROOT / "docs") in page.parents}
    assert listed == {page for page in pages if not re.match(r"decisions/\d", page)}
    for decision in (ROOT / "docs" / "decisions").glob("0*.md"):
        assert f"({decision.name})" in (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
