"""C header, CMSIS-SVD and SystemRDL tell their own readers of every field what the table says."""

import subprocess

import pytest

from nnef_hw.registers.accelerator import accelerator_registers
from nnef_hw.registers.header import c_header
from nnef_hw.registers.page import register_table
from nnef_hw.registers.svd import svd
from nnef_hw.registers.systemrdl import system_rdl
from nnef_hw.registers.table import (
    ACCESSES,
    CONSTANT,
    EVENT,
    POP,
    PULSE,
    PUSH,
    READ,
    WRITE,
    Field,
    Register,
    RegisterMap,
)

HASH = bytes(range(1, 33))
MAPS = [
    accelerator_registers("net", 'my "net"', HASH, with_data=with_data, with_program=with_program)
    for with_data, with_program in ((False, False), (True, False), (True, True))
]
maps = pytest.mark.parametrize("registers", MAPS, ids=["streams", "data", "program"])


def facts(registers):
    """Address, lowest bit, width, initial value and access of every field."""
    return {
        (register.name, field.name): (
            address, field.lowest, field.bits, field.init, field.access
        )
        for address, register in registers.addressed() for field in register.fields
    }  # fmt: skip


def test_every_access_occurs():
    assert {access for *_, access in facts(MAPS[1]).values()} == set(ACCESSES)


@maps
def test_a_compiler_reads_the_header(registers, compiler, tmp_path):
    checks = []
    for address, register in registers.addressed():
        word = f"NET_{register.name.upper()}"
        checks.append(f"{word} == {address}u && {word}_INIT == {register.init}u")
        for field in register.fields:
            label = f"NET_{register.label(field).upper()}"
            checks.append(f"{label}_MASK == {field.mask}u && {label}_SHIFT == {field.lowest}")
    lines = [f"_Static_assert({check}, {n!r});".replace("'", '"') for n, check in enumerate(checks)]
    lines = [line.replace(", ", ', "', 1).replace(");", '");') for line in lines]
    (tmp_path / "registers.h").write_text(c_header(registers))
    program = '#include "registers.h"\n#include "registers.h"\n' + "\n".join(lines)
    (tmp_path / "test.c").write_text(program + "\nint unused;\n")
    command = [compiler, "-std=c11", "-Wall", "-Werror", "-c", "test.c", "-o", "test.o"]
    subprocess.run(command, cwd=tmp_path, check=True)


SVD_ACCESS = {
    ("read-only", None, None): {CONSTANT, READ},
    ("read-only", None, "modify"): {POP},
    ("read-write", None, None): {WRITE},
    ("write-only", None, None): {PUSH},
    ("write-only", "oneToSet", None): {PULSE},
    ("read-write", "oneToClear", None): {EVENT},
}


@maps
def test_a_parser_reads_the_svd(registers, tmp_path):
    parser = pytest.importorskip("cmsis_svd.parser")
    path = tmp_path / "net.svd"
    path.write_text(svd(registers))
    [peripheral] = parser.SVDParser.for_xml_file(str(path)).get_device().peripherals
    found = {}
    for register in peripheral.registers:
        for field in register.fields:
            access = tuple(
                None if value is None else value.value
                for value in (field.access, field.modified_write_values, field.read_action)
            )
            init = register.reset_value >> field.bit_offset & ((1 << field.bit_width) - 1)
            found[register.name.lower(), field.name.lower()] = (
                register.address_offset, field.bit_offset, field.bit_width, init, access,
            )  # fmt: skip
    wanted = facts(registers)
    assert found.keys() == wanted.keys()
    for name, (*numbers, access) in found.items():
        *expected, kind = wanted[name]
        assert numbers == expected
        assert kind in SVD_ACCESS[access]
    assert peripheral.description == 'my "net"'


@maps
def test_a_compiler_reads_the_systemrdl(registers, tmp_path):
    rdl = pytest.importorskip("systemrdl")
    path = tmp_path / "net.rdl"
    path.write_text(system_rdl(registers))
    compiler = rdl.RDLCompiler()
    compiler.compile_file(str(path))
    top = compiler.elaborate().top
    found = {}
    for register in top.registers():
        for field in register.fields():
            flags = {
                access for access, is_so in (
                    (PULSE, field.get_property("singlepulse")),
                    (EVENT, field.get_property("onwrite") is not None),
                    (PUSH, field.get_property("swmod")),
                    (POP, field.get_property("swacc")),
                ) if is_so
            }  # fmt: skip
            software = (field.is_sw_readable, field.is_sw_writable, field.is_hw_writable)
            plain = {(True, False, False): CONSTANT, (True, False, True): READ,
                     (True, True, False): WRITE}.get(software)  # fmt: skip
            [access] = flags or {plain}
            found[register.inst_name, field.inst_name] = (
                register.absolute_address, field.low, field.width, field.get_property("reset"),
                access,
            )  # fmt: skip
    assert found == facts(registers)


@maps
def test_the_page_lists_every_field(registers):
    rows = register_table(registers).splitlines()[2:]
    assert len(rows) == len(facts(registers))
    assert f"| 0x00 | `id` | 31:0 | `id` | constant | {MAPS[0].registers[0].init:#x} |" in rows[0]


def test_the_hash_is_that_of_the_header():
    assert facts(MAPS[0])["hash", "hash"][3] == int.from_bytes(HASH[:4], "little")


def field(**changes):
    return Field(**{"name": "a", "access": WRITE, "description": "It is.", "bits": 4} | changes)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((field(), field(name="b", lowest=3)), "fields a and b of word overlap"),
        ((field(lowest=29),), "within 32 bits"),
        ((), "within 32 bits"),
        ((field(init=16),), "16 does not fit a of word"),
        ((field(access=PUSH),), "a of word must be a whole word"),
    ],
)
def test_what_is_no_register_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Register("word", "It is.", fields)


def test_fields_have_names_of_their_own():
    word = Register("word", "It is.", (field(),))
    with pytest.raises(ValueError, match="names of their own"):
        RegisterMap("net", "A net.", (word, word))
