"""Drawings and words of a page of a report."""

import re
from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def drawing(page, kind):
    """Return a drawing, parsed as XML."""
    return ET.fromstring(re.search(rf'<svg class="{kind}".*?</svg>', page, re.S)[0])


def picture(page):
    """Return the drawing of the network and its boxes."""
    root = drawing(page, "picture")
    return root, [x for x in root.findall(f"{SVG}g") if x.get("class") != "fifo"]


def texts(box):
    return [x.text for x in box.findall(f"{SVG}text")]


def words(page):
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", body.replace("<wbr>", "")).split())
