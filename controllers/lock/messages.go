package lock

// msgLockFull is the failure of Gates whose locks do not fit into a GateLock.
const msgLockFull = "the GateLock has no space for all selectors of the gate: targets without a lock are only held by the controller, until other gates open or select less"
