"""Parts that read memories beside the FPGA: SPI flash and SDRAM.

Their components are in ``rtl.readers``. The chips' own facts are in ``hardware.memories``.
"""
