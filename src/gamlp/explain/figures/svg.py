"""A picture of matplotlib as a part of the page: its colours become the page's variables, its text the page's font.

Names came with the data: matplotlib escapes them, and what is parsed here is escaped again when it is written. Ids of
groups are dropped; those that are referred to are hashes salted by the chart's name, so no two pictures share one.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from markupsafe import Markup

from gamlp.explain.figures.chart import PALETTE

POINT = 4 / 3  # pixels of the page
COLOUR = re.compile("|".join(PALETTE))
FONT = re.compile(r"font:[^;]*?([\d.]+px)[^;]*")


def themed(text: str, title: str) -> Markup:
    """Return an <svg> element for the page from a whole .svg file."""
    root = ElementTree.fromstring(text)  # noqa: S314 — matplotlib's own output
    for element in root.iter():
        element.tag = local(element.tag)
        kept = {local(key): value for key, value in element.attrib.items()}
        if element.tag == "g":
            kept.pop("id", None)
        if "style" in kept:
            kept["style"] = themed_style(kept["style"])
        element.attrib = kept
    for definitions in root.findall("defs"):
        for style in definitions.findall("style"):  # would hold for the whole page; page.css.j2 has it
            definitions.remove(style)
    for metadata in root.findall("metadata"):
        root.remove(metadata)
    box = root.attrib["viewBox"]
    width = float(box.split()[2]) * POINT
    root.attrib = {"viewBox": box, "role": "img", "aria-label": title, "style": f"max-width:{width:.0f}px"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704 — escaped by ElementTree


def themed_style(style: str) -> str:
    """Replace the colours of the palette by the page's variables, and fonts by their size."""
    return COLOUR.sub(lambda found: f"var({PALETTE[found[0]]})", FONT.sub(r"font-size: \1", style))


def local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition("}")[2]
