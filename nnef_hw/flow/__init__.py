"""A build as a flow: options, steps and their cache, the files they leave.

A model goes through quantization, planning, emission, simulation and placement here, each step done
once for the same inputs. How a step works stands in the rooms below.
"""
