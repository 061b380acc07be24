// SDR SDRAM of four banks, as far as single words are read and written: initialization, mode register,
// rows, auto precharge, refresh. The first violated timing or rule ends the simulation with a message.
// Times are counted in periods of `clk`, the chip's own clock, and checked against the parameters
// (docs/memories.md says of which data sheets they are). Data come with CAS latency behind the edge
// that takes READ: between the edge before and that one.
module nnef_hw_sdram #(
    parameter PERIOD_PS = 11111,        // of clk
    parameter WIDTH = 16, ROW_BITS = 13, COLUMN_BITS = 9,
    parameter WORDS = 65536,            // what is modelled of its contents
    parameter RCD_PS = 21000, RP_PS = 21000, RAS_PS = 45000,
    parameter RC_PS = 66000, RFC_PS = 66000, RRD_PS = 15000, WR_PS = 15000, MRD_PS = 15000,
    parameter REFRESH_PS = 7812500, POWER_UP_PS = 200000000,
    parameter CAS_2_PS = 10000, CAS_3_PS = 7518,
    parameter IMAGE = ""                // of its first words, as $readmemh reads them
) (
    input clk, cke, cs_n, ras_n, cas_n, we_n,
    input [1:0] ba,
    input [12:0] a,
    input [WIDTH/8-1:0] dqm,
    inout [WIDTH-1:0] dq
);
    localparam [2:0] MODE = 3'b000, REFRESH = 3'b001, PRECHARGE = 3'b010, ACTIVE = 3'b011,
        WRITE = 3'b100, READ = 3'b101, STOP = 3'b110, NOP = 3'b111;
    localparam NEVER = -64'sd1000000000000;
    // At most so many refreshes may be missing of those that the mean time asks for.
    localparam POSTPONED = 2;

    reg [WIDTH-1:0] words [0:WORDS-1];
    reg signed [63:0] now = 0;
    reg [3:0] open = 0;
    reg [ROW_BITS-1:0] row [0:3];
    reg signed [63:0] activated [0:3];          // last ACTIVE of a bank
    reg signed [63:0] precharged [0:3];         // when its precharge began
    reg signed [63:0] written [0:3];            // last word written to it
    reg signed [63:0] any_activated = NEVER, refreshed = NEVER, mode_set = NEVER, counted = 0;
    reg signed [63:0] commanded = 0;            // last command
    reg [3:0] used = 0, auto_precharge = 0;
    reg precharged_all = 0, has_mode = 0;
    reg [31:0] refreshes = 0;
    reg [1:0] cas = 0;

    // what was read, by the edges until it is driven
    reg [WIDTH-1:0] out1 = 0, out2 = 0, out = 0;
    reg valid1 = 0, valid2 = 0, driving = 0;
    assign dq = driving ? out : {WIDTH{1'bz}};

    integer n;
    initial begin
        for (n = 0; n < 4; n = n + 1) begin
            activated[n] = NEVER;
            precharged[n] = NEVER;
            written[n] = NEVER;
        end
        if (IMAGE != "") $readmemh(IMAGE, words);
    end

    task violation(input [8*64-1:0] what);
        begin
            $display("sdram: %0s (at %0d ps)", what, now);
            $fatal;
        end
    endtask

    task close(input integer bank);
        begin
            if (open[bank]) begin
                if (now - activated[bank] < RAS_PS) violation("tRAS: PRECHARGE too soon");
                if (now - written[bank] < WR_PS) violation("tWR: PRECHARGE too soon behind WRITE");
                precharged[bank] = now;
            end
            open[bank] = 0;
        end
    endtask

    // What auto precharge does by itself, as soon as tRAS and tWR have passed.
    task close_automatically;
        for (n = 0; n < 4; n = n + 1)
            if (auto_precharge[n]) begin
                auto_precharge[n] = 0;
                open[n] = 0;
                precharged[n] = activated[n] + RAS_PS > written[n] + WR_PS
                    ? activated[n] + RAS_PS : written[n] + WR_PS;
            end
    endtask

    task require_idle;
        for (n = 0; n < 4; n = n + 1) begin
            if (open[n]) violation("REFRESH or LOAD MODE REGISTER with an open row");
            if (now - precharged[n] < RP_PS) violation("tRP: a command too soon behind PRECHARGE");
        end
    endtask

    task access(input write);
        reg [31:0] place;
        begin
            if (!open[ba]) violation("READ or WRITE without an open row");
            if (now - activated[ba] < RCD_PS) violation("tRCD: READ or WRITE too soon");
            place = {row[ba], ba, a[COLUMN_BITS-1:0]};
            if (place >= WORDS) violation("an address beyond the modelled words");
            if (write) begin
                if (driving || valid1) violation("WRITE while data are read");
                for (n = 0; n < WIDTH / 8; n = n + 1)
                    if (!dqm[n]) words[place][8*n +: 8] = dq[8*n +: 8];
                written[ba] = now;
            end else begin
                out1 <= words[place];
                valid1 <= 1;
            end
            auto_precharge[ba] = a[10];
        end
    endtask

    task load_mode;
        begin
            require_idle;
            if (refreshes < 2) violation("LOAD MODE REGISTER before two refreshes");
            if (a[6:4] != 2 && a[6:4] != 3) violation("CAS latency is neither 2 nor 3");
            if (a[3:0] != 0 || a[9:7] != 0) violation("a mode without a model");
            if (PERIOD_PS < (a[6:4] == 2 ? CAS_2_PS : CAS_3_PS))
                violation("tCK: the clock is too fast for the CAS latency");
            cas = a[5:4];
            has_mode = 1;
            mode_set = now;
            counted = now;
            refreshes = 0;
        end
    endtask

    task activate;
        begin
            if (!has_mode) violation("ACTIVE before the initialization");
            if (open[ba]) violation("ACTIVE of a bank with an open row");
            if (now - precharged[ba] < RP_PS) violation("tRP: ACTIVE too soon behind PRECHARGE");
            if (now - activated[ba] < RC_PS) violation("tRC: ACTIVE too soon behind ACTIVE");
            if (now - any_activated < RRD_PS) violation("tRRD: ACTIVE too soon in another bank");
            open[ba] = 1;
            row[ba] = a[ROW_BITS-1:0];
            activated[ba] = now;
            any_activated = now;
        end
    endtask

    always @(posedge clk) begin
        now = now + PERIOD_PS;
        // the data of a READ are there from the edge number CAS - 1 behind it on, until the next one
        valid1 <= 0;
        valid2 <= valid1;
        out2 <= out1;
        driving <= cas == 2 ? valid1 : valid2;
        out <= cas == 2 ? out1 : out2;
        close_automatically;
        if (!cke) violation("CKE low has no model");
        if (!cs_n && {ras_n, cas_n, we_n} != NOP) begin
            if (now < POWER_UP_PS) violation("a command before the power-up time");
            // Behind a power-up time without commands it may be initialized anew, as by a host that
            // was reset; the words stay.
            if ({ras_n, cas_n, we_n} == PRECHARGE && a[10] && now - commanded >= POWER_UP_PS) begin
                has_mode = 0;
                refreshes = 0;
            end
            commanded = now;
            if (has_mode && now - counted > (refreshes + POSTPONED) * REFRESH_PS)
                violation("a refresh is missing");
            if (now - refreshed < RFC_PS) violation("tRFC: a command too soon behind REFRESH");
            if (now - mode_set < MRD_PS) violation("tMRD: a command too soon behind LOAD MODE");
            case ({ras_n, cas_n, we_n})
                MODE: load_mode;
                REFRESH: begin
                    if (!precharged_all) violation("REFRESH before PRECHARGE of all banks");
                    require_idle;
                    refreshed = now;
                    refreshes = refreshes + 1;
                end
                PRECHARGE:
                    if (a[10]) begin
                        for (n = 0; n < 4; n = n + 1) close(n);
                        precharged_all = 1;
                        if (!has_mode) precharged[0] = now;
                    end else close(ba);
                ACTIVE: activate;
                WRITE: access(1);
                READ: access(0);
                default: violation("BURST STOP has no model");
            endcase
        end
    end
endmodule
