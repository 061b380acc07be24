"""The board's side of MLPerf Tiny's protocol of text: a core of its own behind the UART.

:mod:`.program` says what is answered, :mod:`.sequencer` runs it, :mod:`.frames` holds an input and
its result, and :mod:`.core` joins them with an accelerator.
"""
