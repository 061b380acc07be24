"""Hardware of microphones: bit clocks, receivers of samples, and what keeps these."""
