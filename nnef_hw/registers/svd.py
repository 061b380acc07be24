"""Registers as CMSIS-SVD, which debuggers and generators of drivers read."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from nnef_hw.registers.table import WORD_BITS, WORD_BYTES, RegisterMap

__all__ = ["svd"]


def svd(registers: RegisterMap) -> str:
    """Return CMSIS-SVD 1.3 of a device with one peripheral, at address 0."""
    root = ET.Element("device", schemaVersion="1.3")
    _elements(
        root, name=registers.name, version="1.0", description=registers.title,
        addressUnitBits="8", width=str(WORD_BITS), size=str(WORD_BITS), resetValue="0x0",
        resetMask="0xffffffff",
    )  # fmt: skip
    found = ET.SubElement(ET.SubElement(root, "peripherals"), "peripheral")
    _elements(found, name=registers.name, description=registers.title, baseAddress="0x0")
    block = ET.SubElement(found, "addressBlock")
    size = WORD_BYTES * len(registers.registers)
    _elements(block, offset="0x0", size=f"{size:#x}", usage="registers")
    listed = ET.SubElement(found, "registers")
    for address, register in registers.addressed():
        word = ET.SubElement(listed, "register")
        _elements(
            word, name=register.name.upper(), description=register.description,
            addressOffset=f"{address:#x}", resetValue=f"{register.init:#x}",
        )  # fmt: skip
        fields = ET.SubElement(word, "fields")
        for field in register.fields:
            part = ET.SubElement(fields, "field")
            _elements(
                part, name=field.name.upper(), description=field.description,
                bitOffset=str(field.lowest), bitWidth=str(field.bits), **dict(field.access.svd),
            )  # fmt: skip
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, "unicode")}\n'


def _elements(parent: ET.Element, **texts: str) -> None:
    for name, text in texts.items():
        ET.SubElement(parent, name).text = text
