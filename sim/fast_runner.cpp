// Runs a stream accelerator over files of beats, with no interpreter in the loop.
//
// It knows the accelerator by stream_model.h alone, and is compiled once for all of them. Arguments: RESULT STALL SEED
// FRAMES IDLE_LIMIT MAX_CYCLES DRAIN SECONDS LEAST TOTAL TRACE TRACED SCOPES SEQUENCES, then FILE WORDS per input and WORDS WIDTH
// BEATS per output. FILE holds beats of WORDS 64-bit words. RESULT gets four words (status, cycles, seconds as a double,
// number of the output at fault) and the numbers of beats per input and output; then the cycle of each beat, input by
// input; then output by output the cycle of each beat, and the beats. A run ends after BEATS beats of every output, or
// after FRAMES beats with the top bit set where BEATS is 0. After SECONDS (0: never) no further frame begins, but for
// the first LEAST of TOTAL; the run is then the one that those frames alone would give. The waveform TRACE ends after
// TRACED frames of every output, and has the SCOPES, separated by commas, or all; a disk that gets full ends the run.
// If SEQUENCES is not 0, all streams have that many equal parts, and the accelerator is reset for a cycle between them.

#include "stream_model.h"

#include <chrono>
#include <filesystem>
#include <sstream>

namespace {

enum Status : uint64_t { Done, Deadlock, CycleLimit, ValidDropped, PayloadChanged, ExtraBeat };

// One pause generator per end, so that no end's pauses depend on another's.
class Pauses {
public:
    Pauses(double probability, uint64_t seed)
        : m_threshold(static_cast<uint64_t>(probability * 4294967296.0)), m_state(seed * 2 + 1) {}
    bool next() {
        if (!m_threshold) return false;
        m_state = m_state * 6364136223846793005ull + 1442695040888963407ull;
        return (m_state >> 32) < m_threshold;
    }

private:
    uint64_t m_threshold;
    uint64_t m_state;
};

// Offers beats in order; an offer stands until it is taken.
struct Source {
    InputPort port;
    std::vector<uint64_t> beats, cycles;
    size_t words, total, limit;
    bool offered;

    bool is_done() const { return cycles.size() == total; }
    void drive(Pauses& pauses) {
        if (!offered && cycles.size() < limit) {
            offered = !pauses.next();
            // while nothing is offered the payload is another beat's: nobody may look at it
            const size_t position = cycles.size(), shown = offered ? position : (position * 7 + 3) % total;
            port.put(&beats[shown * words]);
        }
        *port.valid = offered;
    }
    bool fires(uint64_t cycle) {
        if (!offered || !*port.ready) return false;
        cycles.push_back(cycle);
        offered = false;
        return true;
    }
};

// Takes beats and checks the rules of the stream.
struct Sink {
    OutputPort port;
    size_t words, last_bit;
    uint64_t wanted_beats, wanted_frames;
    std::vector<uint64_t> payloads, cycles, payload, held;
    uint64_t frames;
    bool waiting, is_done;

    Status observe() {
        if (!*port.valid) return waiting ? ValidDropped : Done;
        port.get(payload.data());
        if (waiting && payload != held) return PayloadChanged;
        if (is_done) return ExtraBeat;
        waiting = !*port.ready;
        if (waiting) held = payload;
        return Done;
    }
    bool fires(uint64_t cycle) {
        if (!*port.valid || !*port.ready) return false;
        cycles.push_back(cycle);
        payloads.insert(payloads.end(), payload.begin(), payload.end());
        frames += payload[last_bit / 64] >> (last_bit % 64) & 1;
        is_done = wanted_beats ? cycles.size() == wanted_beats : frames == wanted_frames;
        return true;
    }
};

std::vector<uint64_t> read_words(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (!file) {
        std::perror(path);
        std::exit(2);
    }
    std::fseek(file, 0, SEEK_END);
    std::vector<uint64_t> words(std::ftell(file) / sizeof(uint64_t));
    std::rewind(file);
    if (std::fread(words.data(), sizeof(uint64_t), words.size(), file) != words.size()) std::exit(2);
    std::fclose(file);
    return words;
}

void write_words(std::FILE* file, const std::vector<uint64_t>& words) {
    if (std::fwrite(words.data(), sizeof(uint64_t), words.size(), file) != words.size()) {
        std::perror("results");
        std::exit(2);
    }
}

// The writers of waveforms do not all notice a full disk, so it must not get so far.
[[maybe_unused]] const uint64_t TraceCycles = 4096, TraceReserve = 16 << 20;
[[maybe_unused]] void require_space(const std::filesystem::path& folder) {
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    if (error || space.available >= TraceReserve) return;
    std::fputs("waveform: disk full\n", stderr);
    std::_Exit(2);
}

}  // namespace

int main(int argc, char** argv) {
    VerilatedContext context;
    context.traceEverOn(IS_TRACED);
    StreamModel model = make_model(&context);
    std::vector<Source> sources;
    std::vector<Sink> sinks;
    for (int n = 0; n < model.input_count; ++n) sources.push_back({model.inputs[n]});
    for (int n = 0; n < model.output_count; ++n) sinks.push_back({model.outputs[n]});

    if (argc != static_cast<int>(15 + 2 * sources.size() + 3 * sinks.size())) return 2;
    const auto number = [&](int place) { return std::strtoull(argv[place], nullptr, 10); };
    const double stall = std::strtod(argv[2], nullptr);
    const uint64_t seed = number(3), wanted_frames = number(4), idle_limit = number(5);
    const uint64_t max_cycles = number(6), drain = number(7);
    const double time_limit = std::strtod(argv[8], nullptr);
    const uint64_t least_frames = number(9), total_frames = number(10);
    const uint64_t sequences = number(14);
    int place = 15;
    std::vector<Pauses> source_pauses, sink_pauses;
    for (Source& source : sources) {
        source.beats = read_words(argv[place]);
        source.words = number(place + 1);
        source.total = source.beats.size() / source.words;
        source.limit = sequences ? source.total / sequences : source.total;
        source.cycles.reserve(source.total);
        source_pauses.emplace_back(stall, seed + source_pauses.size() * 0xd1b54a32d192ed03ull);
        place += 2;
    }
    for (Sink& sink : sinks) {
        sink.words = number(place);
        sink.last_bit = number(place + 1) - 1;
        sink.wanted_beats = number(place + 2);
        sink.wanted_frames = wanted_frames;
        sink.payload.resize(sink.words);
        sink_pauses.emplace_back(stall, (seed ^ 0x9e3779b97f4a7c15ull) + sink_pauses.size() * 0xd1b54a32d192ed03ull);
        place += 3;
    }

#if IS_TRACED
    Trace trace;
    bool tracing = argv[11][0] != 0;
    const uint64_t traced_frames = number(12);
    const auto trace_folder = std::filesystem::path(argv[11]).parent_path();
    if (tracing) {
        model.trace(&trace, 99);
        std::istringstream scopes(argv[13]);
        for (std::string scope; std::getline(scopes, scope, ',');) trace.dumpvars(99, scope);
        require_space(trace_folder);
        trace.open(argv[11]);
    }
#endif
    uint64_t half_cycles = 0;
    const auto step = [&](int clk) {
        *model.clk = clk;
        model.eval();
#if IS_TRACED
        if (tracing) trace.dump(half_cycles);
#endif
        ++half_cycles;
    };

    *model.rst = 1;
    step(0);
    step(1);
    *model.rst = 0;

    Status status = Done;
    uint64_t cycle = 0, idle = 0, drained = 0, fault = 0;
    bool delivered = false;

    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    bool limited = time_limit > 0;
    uint64_t sequence = 1;
    std::vector<size_t> input_parts, output_parts;
    for (const Source& source : sources) input_parts.push_back(source.limit);
    for (const Sink& sink : sinks) output_parts.push_back(sequences ? sink.wanted_beats / sequences : 0);
    for (;; ++cycle) {
        if (limited && cycle % 256 == 0 && elapsed() >= time_limit) {
            uint64_t frames = least_frames;
            for (const Source& source : sources) {
                const uint64_t beats = source.total / total_frames;
                frames = std::max(frames, (source.cycles.size() + source.offered + beats - 1) / beats);
            }
            if (frames < total_frames) {
                for (Source& source : sources) {
                    source.total = source.total / total_frames * frames;
                    source.limit = std::min(source.limit, source.total);
                }
                for (Sink& sink : sinks) {
                    sink.wanted_beats = sink.wanted_beats / total_frames * frames;
                    sink.is_done = sink.cycles.size() == sink.wanted_beats;
                }
            }
            limited = false;
        }
        // the rest of the input must be taken, and then for DRAIN cycles no output may come
        if (delivered) {
            bool taken = true;
            for (const Source& source : sources) taken &= source.is_done();
            if (!drain || (taken && drained++ == drain)) break;
        }
        if (idle >= idle_limit || (max_cycles && cycle >= max_cycles)) {
            status = idle >= idle_limit ? Deadlock : CycleLimit;
            break;
        }

        if (sequences && sources[0].limit < sources[0].total) {
            bool ended = true;
            for (size_t n = 0; n < sources.size(); ++n) ended &= sources[n].cycles.size() == input_parts[n] * sequence;
            for (size_t n = 0; n < sinks.size(); ++n) ended &= sinks[n].cycles.size() == output_parts[n] * sequence;
            if (ended) {
                for (Source& source : sources) *source.port.valid = 0;
                for (Sink& sink : sinks) sink.waiting = false;
                *model.rst = 1;
                step(0);
                step(1);
                *model.rst = 0;
                ++sequence;
                for (size_t n = 0; n < sources.size(); ++n) sources[n].limit += input_parts[n];
                continue;
            }
        }

        for (size_t n = 0; n < sources.size(); ++n) sources[n].drive(source_pauses[n]);
        for (size_t n = 0; n < sinks.size(); ++n) *sinks[n].port.ready = !sink_pauses[n].next();
        step(0);
        for (size_t n = 0; n < sinks.size() && status == Done; ++n) {
            fault = n;
            status = sinks[n].observe();
        }
        if (status != Done) break;

        // what moves is seen before the clock's edge changes it
        bool moves = false;
        for (Source& source : sources) moves |= source.fires(cycle);
        delivered = true;
        for (Sink& sink : sinks) {
            moves |= sink.fires(cycle);
            delivered &= sink.is_done;
        }
        idle = moves ? 0 : idle + 1;
        step(1);
#if IS_TRACED
        if (tracing) {
            uint64_t frames = sinks.front().frames;
            for (const Sink& sink : sinks) frames = std::min(frames, sink.frames);
            tracing = frames < traced_frames;
            // so that little is still to be written when the space is looked at
            if (tracing && cycle % TraceCycles == 0) trace.flush();
            if (!tracing || cycle % TraceCycles == 0) require_space(trace_folder);
            if (!tracing) trace.close();
        }
#endif
    }
    const double seconds = elapsed();
    model.final();
#if IS_TRACED
    if (tracing) trace.close();
#endif

    std::vector<uint64_t> header{status, cycle, 0, fault};
    std::memcpy(&header[2], &seconds, sizeof seconds);
    for (const Source& source : sources) header.push_back(source.cycles.size());
    for (const Sink& sink : sinks) header.push_back(sink.cycles.size());
    std::FILE* file = std::fopen(argv[1], "wb");
    if (!file) {
        std::perror(argv[1]);
        return 2;
    }
    write_words(file, header);
    for (const Source& source : sources) write_words(file, source.cycles);
    for (const Sink& sink : sinks) {
        write_words(file, sink.cycles);
        write_words(file, sink.payloads);
    }
    return std::fclose(file) ? 2 : 0;
}
