"""How measurements come in: collectors, probe, readers, spool, agent and the fault lab."""
