"""Components that read memories beside the FPGA, and the pads of their pins.

SPI flash and SDRAM are here. ``parts.readers`` has their facts.
"""
