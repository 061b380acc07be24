"""The host against a model of the board written from docs/protocol.md, over a bad line."""

import re
from binascii import crc_hqx

import pytest

from nnef_hw.host.link import Host, LinkError, Timing
from nnef_hw.host.packets import Counters, Identity, Packet, decode_packet, encode_packet
from nnef_hw.host.protocol import Reason, Reply, Request

HASH = bytes(range(32))
IDENTITY = bytes([1, 56, 1, 1]) + (24_000_000).to_bytes(4, "little") + HASH
TIMING = Timing(stall=0.05)


class ModelBoard:
    """Board whose accelerator adds 1; silence on the line is a ``read`` that finds nothing."""

    def __init__(self, *, room=10_000):
        self.room = room
        self.inputs, self.results = bytearray(), bytearray()
        self.frames = 0
        self.session = False
        self.last, self.reply, self.portion = 0, b"", 0
        self.parser, self.outgoing = b"", b""
        self.damage_request = self.damage_reply = bytes

    def write(self, data):
        self.parser += self.damage_request(data)
        self.outgoing += self.damage_reply(self._parse())

    def read(self, timeout):
        received, self.outgoing = self.outgoing, b""
        if not received and timeout >= 0.03:
            self.parser = b""
        return received

    def _parse(self):
        """Answer to the first packet; what arrives during the answer is lost."""
        start = self.parser.find(0xA5)
        rest = self.parser[start:] if start >= 0 else b""
        self.parser = rest
        if len(rest) < 5:
            return b""
        if rest[4] > 56:
            self.parser = b""
            return encode_packet(Packet(Reply.NAK, rest[2], Reason.DAMAGED))
        end = 7 + rest[4]
        if len(rest) < end:
            return b""
        self.parser = b""
        if crc_hqx(rest[1:end], 0xFFFF):
            return encode_packet(Packet(Reply.NAK, rest[2], Reason.DAMAGED))
        if rest[1] not in {4, 5, 6} or rest[2] != self.last or not self.session:
            del self.results[: self.portion]
            self.portion = 0
            kind, argument, payload = self._execute(rest[1], rest[5 : end - 2])
            self.last = rest[2]
            self.reply = encode_packet(Packet(kind, self.last, argument, payload))
        return self.reply

    def _execute(self, kind, payload):
        if kind == Request.IDENTIFY:
            return Reply.IDENTITY, 0, IDENTITY
        if kind == Request.ABORT:
            self.inputs.clear()
            self.results.clear()
            self.session = True
            return Reply.ACK, 0, b""
        if kind == Request.COUNTERS:
            return Reply.COUNTS, 0, bytes([1, 2, 0, 0, 3, 0, 0, 1, self.frames, 7])
        if not self.session:
            return Reply.NAK, Reason.SESSION, b""
        if kind == Request.READ:
            self.portion = min(len(self.results), 56)
            return Reply.RESULT, 0, bytes(self.results[: self.portion])
        if len(self.results) > self.room:
            return Reply.BUSY, 0, b""
        self.inputs += payload
        self.results += bytes((byte + 1) & 0xFF for byte in payload)
        self.frames += kind == Request.DATA_END
        return Reply.ACK, 0, b""


@pytest.fixture
def board():
    return ModelBoard()


@pytest.fixture
def host(board):
    host = Host(board, TIMING, sequence=250)
    host.open(HASH)
    return host


def increment(frame):
    return bytes((byte + 1) & 0xFF for byte in frame)


def test_crc_check_value():
    assert crc_hqx(b"123456789", 0xFFFF) == 0x29B1


def test_packet_example_of_the_document():
    assert encode_packet(Packet(Request.IDENTIFY, 1)).hex(" ") == "a5 01 01 00 00 c5 44"


@pytest.mark.parametrize("length", [0, 1, 56], ids="{}_bytes".format)
def test_packets_survive_the_line(rng, length):
    packet = Packet(Request.DATA, 0xA5, 3, rng.bytes(length))
    line = encode_packet(packet)
    assert decode_packet(line) == (packet, b"")
    assert decode_packet(b"\xa5\x04noise\xa5" + line + b"\xa5\x01") == (packet, b"\xa5\x01")
    for cut in range(len(line)):
        assert decode_packet(line[:cut])[0] is None


@pytest.mark.parametrize("length", [0, 3, 56], ids="{}_bytes".format)
def test_no_change_of_one_byte_goes_unseen(rng, length):
    line = encode_packet(Packet(Request.DATA, 9, 0, rng.bytes(length)))
    for position in range(len(line)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            changed = bytearray(line)
            changed[position] ^= mask
            assert decode_packet(bytes(changed) + bytes(60))[0] is None


def test_overlong_payload_is_refused():
    with pytest.raises(ValueError, match="payload of 57 bytes is over 56"):
        encode_packet(Packet(Request.DATA, 0, 0, bytes(57)))


def test_identity_and_counters(host):
    assert host.identify() == Identity(1, 56, 1, 1, 24_000_000, HASH)
    assert host.counters() == Counters(0x201, 0x1000003, 0, 7)


def test_many_frames_wrap_the_sequence_number(host, board, rng):
    frames = [rng.bytes(100) for _ in range(200)]
    assert list(host.infer(iter(frames), 100)) == [increment(frame) for frame in frames]
    assert board.inputs == b"".join(frames)
    assert board.frames == 200


def test_results_are_read_when_the_board_is_busy(rng):
    board = ModelBoard(room=60)
    host = Host(board, TIMING)
    host.open()
    frames = [rng.bytes(150) for _ in range(5)]
    assert list(host.infer(frames, 150)) == [increment(frame) for frame in frames]


@pytest.mark.parametrize("direction", ["requests", "replies", "both"])
def test_a_bad_line_never_changes_a_result(host, board, rng, direction):
    """Every third packet is changed, cut, doubled, lost, or surrounded by noise."""

    def damage(line):
        if rng.random() > 0.3 or not line:
            return line
        cut = int(rng.integers(len(line)))
        flipped = line[:cut] + bytes([line[cut] ^ 1 << int(rng.integers(8))]) + line[cut + 1 :]
        kinds = [flipped, line[:cut], line[cut:], line + line, b"", rng.bytes(9) + line + b"\xa5"]
        return kinds[int(rng.integers(len(kinds)))]

    board.damage_request = damage if direction != "replies" else bytes
    board.damage_reply = damage if direction != "requests" else bytes
    host = Host(board, Timing(stall=0.05, retries=30))
    host.open(HASH)
    frames = [rng.bytes(130) for _ in range(60)]
    assert list(host.infer(frames, 130)) == [increment(frame) for frame in frames]
    assert board.inputs == b"".join(frames)


def test_dead_board_is_reported(board):
    board.damage_request = lambda line: b""
    with pytest.raises(LinkError, match=r"board does not answer IDENTIFY after 11 attempts"):
        Host(board, TIMING).open()


def test_noisy_line_is_reported(board):
    board.read = lambda timeout: b"\xa5\xa5"
    with pytest.raises(LinkError, match="line is never silent; check the port and the baud rate"):
        Host(board, TIMING).open()


def test_wrong_build_is_reported(board):
    with pytest.raises(LinkError, match=re.escape("board runs build 0001020304050607, not ffff")):
        Host(board, TIMING).open(b"\xff" * 32)


def test_board_without_session_is_reported(host, board):
    board.session = False
    with pytest.raises(LinkError, match="board refuses READ: session; it was reset"):
        host.read()


def test_missing_results_are_reported(host):
    with pytest.raises(LinkError, match=re.escape("accelerator sent no result for 0.05 seconds")):
        list(host.infer([b"abc"], 4))


def test_surplus_results_are_reported(host):
    with pytest.raises(LinkError, match="board sent 1 bytes after the last result"):
        list(host.infer([b"abc"], 2))


def test_unknown_reason_is_reported(host, board):
    board._execute = lambda kind, payload: (Reply.NAK, 99, b"")
    with pytest.raises(LinkError, match="board refuses COUNTERS: reason 99"):
        host.counters()


def test_other_protocol_version_is_reported(host, board):
    board._execute = lambda kind, payload: (Reply.IDENTITY, 0, bytes([2]) + IDENTITY[1:])
    with pytest.raises(LinkError, match="board speaks link protocol 2, not 1"):
        host.identify()
