package events

// msgHeldAgain is the message of events on targets that a client resumes again and again.
const msgHeldAgain = "Resumed while %s, held again. Open the gate instead."
