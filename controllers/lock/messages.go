package lock

// msgLockFull is the failure of Gates whose locks do not fit into a GateLock.
const msgLockFull = "the GateLock has no space for all selectors of the gate: only the controller holds the remaining targets, until other gates open or have fewer selectors"
