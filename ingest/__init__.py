"""The intake of measurements: collectors, probe, readers, spool, agent and the fault lab."""
