"""The host against the link in hardware, through the UART pins."""

import itertools

import pytest

from nnef_hw.host.link import LinkError
from nnef_hw.host.packets import Packet, decode_packet, encode_packet
from nnef_hw.host.protocol import Reason, Reply, Request

MANIFEST_HASH = bytes(range(100, 132))
FRAME_BEATS = 5

pytestmark = pytest.mark.verilator


def increment(frame):
    return bytes((byte + 1) & 0xFF for byte in frame)


def exchange(board, request, cycles=3500):
    """Send one raw packet; return all replies and what is left."""
    board.write(request)
    board.advance(cycles)
    received = board.read(0)
    replies = []
    packet, received = decode_packet(received)
    while packet:
        replies.append(packet)
        packet, received = decode_packet(received)
    return replies


def test_identify_tells_build_and_beats(make_board, make_host):
    board = make_board(lanes=3)
    identity = make_host(board).identify()
    assert identity.manifest_hash == MANIFEST_HASH
    assert (identity.version, identity.max_payload) == (1, 56)
    assert (identity.in_bytes, identity.out_bytes, identity.clk_hz) == (3, 3, 1_000_000)


def test_open_refuses_another_build(board, make_host):
    with pytest.raises(LinkError, match="board runs build 6465666768696a6b"):
        make_host(board).open(bytes(32))


@pytest.mark.parametrize("length", [1, 55, 56, 57, 130], ids="{}_bytes".format)
def test_frames_of_every_size(host, board, rng, length):
    frames = [rng.bytes(length) for _ in range(3)]
    assert list(host.infer(frames, length)) == [increment(frame) for frame in frames]
    lasts = [last for _, last in board.accepted]
    assert lasts == ([0] * (length - 1) + [1]) * 3


def test_beats_span_packets(make_board, make_host, rng):
    board = make_board(lanes=5)
    host = make_host(board)
    host.open()
    frames = [rng.bytes(75) for _ in range(2)]
    assert list(host.infer(frames, 75)) == [increment(frame) for frame in frames]
    assert [last for _, last in board.accepted] == ([0] * 14 + [1]) * 2
    assert board.accepted[0][0] == list(frames[0][:5])


def test_wide_signed_codes_are_two_bytes(make_board, make_host, wide_signed):
    host = make_host(make_board(**wide_signed))
    host.open()
    codes = [-2048, -1, 2046, 0, 100, -100]
    frame = b"".join(code.to_bytes(2, "little", signed=True) for code in codes)
    [result] = host.infer([frame], len(frame))
    values = [int.from_bytes(result[k : k + 2], "little", signed=True) for k in range(0, 12, 2)]
    assert values == [code + 1 for code in codes]


def test_bytes_of_data_packet_flipped_in_turn(board, host):
    frame = bytes([0xA5, 7, 0xFF])
    size = len(encode_packet(Packet(Request.DATA, 0, 0, frame)))
    for position, mask in itertools.product(range(size), [0x01, 0x80, 0xFF]):
        pending = [True]

        def flip(payload, position=position, mask=mask, pending=pending):
            if payload[1] != Request.DATA_END or not pending:
                return payload
            pending.clear()
            return payload[:position] + bytes([payload[position] ^ mask]) + payload[position + 1 :]

        board.mangle_request = flip
        board.accepted.clear()
        assert list(host.infer([frame], 3)) == [increment(frame)], (position, mask)
        assert len(board.accepted) == 3
    assert host.counters().damaged > size


@pytest.mark.parametrize("count", [1, 2], ids=["dropped", "doubled"])
def test_bytes_of_data_packet_lost_or_doubled(board, host, count):
    frame = bytes([0xA5, 7, 0xA5])
    for position in range(10):
        pending = [True]

        def change(payload, position=position, pending=pending):
            if payload[1] != Request.DATA_END or not pending:
                return payload
            pending.clear()
            middle = payload[position : position + 1] * (2 if count == 2 else 0)
            return payload[:position] + middle + payload[position + 1 :]

        board.mangle_request = change
        board.accepted.clear()
        assert list(host.infer([frame], 3)) == [increment(frame)], position
        assert len(board.accepted) == 3


def test_repeated_packets_enter_once(board, host, rng):
    board.mangle_request = lambda payload: payload + payload
    frames = [rng.bytes(60) for _ in range(2)]
    assert list(host.infer(frames, 60)) == [increment(frame) for frame in frames]
    assert len(board.accepted) == 120


def test_lost_replies_change_nothing(board, host, rng):
    """Every second reply is lost: both data and results are repeated."""
    lose = itertools.cycle([True, False])
    state = {"lost": False}

    def lose_reply(payload):
        if payload[1] in {Request.DATA, Request.DATA_END, Request.READ}:
            state["lost"] = next(lose)
        return payload

    board.mangle_request = lose_reply
    board.mangle_reply = lambda byte: b"" if state["lost"] else bytes([byte])
    frames = [rng.bytes(70) for _ in range(2)]
    assert list(host.infer(frames, 70)) == [increment(frame) for frame in frames]
    assert len(board.accepted) == 140


def test_damaged_replies_are_asked_for_again(board, host, rng):
    flip = itertools.cycle([0, 0x10] + 27 * [0])
    board.mangle_reply = lambda byte: bytes([byte ^ next(flip)])
    frame = rng.bytes(10)
    assert list(host.infer([frame], 10)) == [increment(frame)]
    assert len(board.accepted) == 10


def test_garbage_between_packets_is_survived(board, host, rng):
    board.mangle_request = lambda payload: (
        rng.bytes(3) + payload if rng.random() < 0.5 else payload + bytes([0xA5, 4, 9])
    )
    frames = [rng.bytes(20) for _ in range(4)]
    assert list(host.infer(frames, 20)) == [increment(frame) for frame in frames]
    assert len(board.accepted) == 80


def test_abort_in_the_middle_of_frame_and_beat(make_board, make_host):
    board = make_board(lanes=3)
    host = make_host(board)
    host.open()
    assert host.send(bytes(range(56)))
    host.abort()
    board.accepted.clear()
    frame = bytes(range(200, 230))
    assert list(host.infer([frame], 30)) == [increment(frame)]
    assert len(board.accepted) == 10


def test_stalled_accelerator_makes_the_board_busy(board, host):
    board.enable = False
    assert host.send(b"abc")
    assert not host.send(b"def")
    assert not host.send(b"def", end=True)
    board.enable = True
    board.advance(100)
    assert host.send(b"def", end=True)
    assert host.read() == b"bcdefg"
    assert host.read() == b""


def test_unread_results_stall_the_accelerator_without_loss(board, host, rng):
    """The ring of 255 results fills, then FIFO and packet buffer."""
    frame = rng.bytes(400)
    sent = 0
    while host.send(frame[sent : sent + 40]):
        sent += 40
    assert 255 < sent < 400
    results = host.read()
    while sent < 400:
        if host.send(frame[sent : sent + 40], end=sent == 360):
            sent += 40
        results += host.read()
    chunk = host.read()
    while chunk:
        results += chunk
        chunk = host.read()
    assert results == increment(frame)


def test_slow_accelerator_is_polled(board, host, rng):
    frames = [rng.bytes(64) for _ in range(3)]
    ticks = itertools.count()

    def toggle(byte):
        board.enable = next(ticks) % 8 == 0
        return bytes([byte])

    board.mangle_reply = toggle
    assert list(host.infer(frames, 64)) == [increment(frame) for frame in frames]


def test_repeated_number_repeats_the_reply(board, host):
    assert list(host.infer([b"x"], 1)) == [b"y"]
    assert host.send(b"abc", end=True)
    board.advance(100)
    request = encode_packet(Packet(Request.READ, 0x77))
    first = exchange(board, request)
    assert first == [Packet(Reply.RESULT, 0x77, 0, b"bcd")]
    assert exchange(board, request) == first
    assert exchange(board, request[:-1] + b"\0") == [Packet(Reply.NAK, 0x77, Reason.DAMAGED)]
    assert exchange(board, request) == first
    again = encode_packet(Packet(Request.READ, 0x78))
    assert exchange(board, again) == [Packet(Reply.RESULT, 0x78)]


@pytest.mark.parametrize(
    ("request_packet", "reason"),
    [
        (Packet(0x08, 50), Reason.TYPE),
        (Packet(Request.REPLAY, 50), Reason.LENGTH),
        (Packet(Request.REPLAY, 50, 0, b"abc"), Reason.LENGTH),
        (Packet(0, 50), Reason.TYPE),
        (Packet(0x84, 50, 0, b"abc"), Reason.TYPE),
        (Packet(Request.DATA, 50, 1, b"abc"), Reason.TENSOR),
        (Packet(Request.READ, 50, 0x80), Reason.TENSOR),
        (Packet(Request.DATA_END, 50), Reason.LENGTH),
    ],
    ids=[
        "unknown",
        "empty_replay",
        "long_replay",
        "zero",
        "reply",
        "data_tensor",
        "read_tensor",
        "empty",
    ],
)
def test_refusals_name_the_reason(board, host, request_packet, reason):
    request = encode_packet(request_packet)
    assert exchange(board, request) == [Packet(Reply.NAK, 50, reason)]
    board.advance(200)
    assert board.accepted == []
    assert list(host.infer([b"ok"], 2)) == [b"pl"]


@pytest.mark.parametrize("length", [57, 63, 64, 120, 255], ids=str)
def test_overlong_packets_are_damaged(board, host, length):
    reply = exchange(board, bytes([0xA5, Request.DATA, 9, 0, length]), cycles=600)
    assert reply == [Packet(Reply.NAK, 9, Reason.DAMAGED)]
    assert host.counters().damaged == 1


def test_reset_of_the_board_ends_the_session(board, host):
    assert host.send(b"abc")
    board.pressed = True
    board.advance(2)
    board.pressed = False
    board.advance(2)
    with pytest.raises(LinkError, match=r"board refuses DATA_END: session; it was reset"):
        host.send(b"def", end=True)
    host.open(MANIFEST_HASH)
    assert list(host.infer([b"fresh"], 5)) == [b"gsfti"]


def test_unfinished_packet_is_forgotten_after_silence(board, host):
    packet = encode_packet(Packet(Request.DATA_END, 99, 0, b"abc"))
    for size in range(1, len(packet)):
        board.write(packet[:size])
        board.advance(40 * size + 300)
        assert list(host.infer([b"q"], 1)) == [b"r"], size
        assert host.counters().damaged == 0
    assert len(board.accepted) == len(packet) - 1


def test_counters_measure_the_accelerator(board, host):
    """Both frames wait in front of the accelerator, then run through at one beat per 3 cycles."""
    list(host.infer([b"abcd"], 4))
    alone = host.counters()
    assert alone.frames == 1
    assert alone.latency == 3 * 3 + 3  # the link takes a result in the cycle after its last byte
    list(host.infer([b"abcd", b"efgh"], 4))
    counters = host.counters()
    assert counters.frames == 3
    assert counters.latency == alone.latency
    packet_cycles = (4 + 7) * 4 * 10
    assert packet_cycles < counters.interval < 3 * packet_cycles
    host.abort()
    assert host.counters() == host.counters().__class__(0, 0, 0, 0)


def test_led_is_lit_while_a_frame_is_inside(board, host):
    board.enable = False
    host.send(b"abc")
    assert board.lit == 0
    board.enable = True
    board.advance(100)
    assert board.lit == 1
    host.send(b"d", end=True)
    board.advance(100)
    assert board.lit == 0


def test_reply_starts_after_the_stated_latency(board):
    exchange(board, encode_packet(Packet(Request.IDENTIFY, 1)))
    assert len(board.request_starts) == 7
    waited = board.reply_starts[0] - board.request_starts[-1]
    assert abs(waited - board.latency) <= 1


def test_replay_drops_its_results_and_keeps_data_out(board, host):
    """Frames of five beats, through an accelerator that is switched off for a while."""
    board.enable = False
    assert host.replay(300)
    assert not host.replay(0)
    assert not host.send(b"abc", end=True)
    board.enable = True
    host.wait_for_replay()
    counters = host.counters()
    assert (counters.frames, counters.interval) == (300 % 256, FRAME_BEATS)
    assert len(board.accepted) == 300 * FRAME_BEATS
    assert board.accepted[:FRAME_BEATS] == [([n], n == FRAME_BEATS - 1) for n in range(FRAME_BEATS)]
    assert host.read() == b""
    assert list(host.infer([b"hello"], 5)) == [b"ifmmp"]


def test_replay_waits_for_frames_inside(board, host):
    assert host.send(b"abc")
    assert not host.replay(2)
    assert host.send(b"de", end=True)
    host.wait_for_replay()
    assert host.read() == b"bcdef"


def test_repeated_replay_is_not_executed_again(board, host):
    request = encode_packet(Packet(Request.REPLAY, 0x77, 0, b"\x02\x00"))
    assert exchange(board, request) == exchange(board, request) == [Packet(Reply.ACK, 0x77)]
    assert host.counters().frames == 2


@pytest.fixture
def far_board(make_board):
    """A board whose accelerator is behind FIFOs of registers, with frames of a beat."""
    return make_board(long_wires=True, frame_beats=1)


def test_far_accelerator_is_served(far_board, make_host, rng):
    host = make_host(far_board)
    host.open(MANIFEST_HASH)
    frames = [rng.bytes(70) for _ in range(3)]
    assert list(host.infer(frames, 70)) == [increment(frame) for frame in frames]
    assert [last for _, last in far_board.accepted] == ([0] * 69 + [1]) * 3
    assert host.counters().frames == 3


def test_far_accelerator_is_not_replayed_to_behind_a_beat_on_its_way(far_board, make_host):
    host = make_host(far_board)
    host.open(MANIFEST_HASH)
    far_board.enable = False
    assert host.send(b"a", end=True)
    far_board.advance(100)
    assert not host.replay(2)
    far_board.enable = True
    far_board.advance(100)
    assert host.read() == b"b"
    assert host.replay(2)


def test_replay_to_far_accelerator_lasts_until_its_last_beat_is_there(far_board, make_host):
    host = make_host(far_board)
    host.open(MANIFEST_HASH)
    far_board.enable = False
    assert host.replay(2)
    far_board.advance(100)
    assert not host.send(b"a", end=True)
    far_board.enable = True
    host.wait_for_replay()
    assert host.read() == b""
    assert len(far_board.accepted) == 2
    assert list(host.infer([b"a"], 1)) == [b"b"]


@pytest.mark.parametrize("total", range(252, 262))
def test_results_that_wait_are_not_lost_to_a_replay(far_board, make_host, rng, total):
    """The ring of 255 results fills, then what is between it and the accelerator."""
    host = make_host(far_board)
    host.open(MANIFEST_HASH)
    frame = rng.bytes(total)
    for begin in range(0, total, 50):
        assert host.send(frame[begin : begin + 50], end=begin + 50 >= total)
    far_board.advance(500)
    host.replay(1)
    results = b""
    while chunk := host.read():
        results += chunk
        far_board.advance(100)
    assert results == increment(frame)
