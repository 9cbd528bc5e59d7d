package events

// msgHeldAgain is the message of events on targets that a client resumes repeatedly.
const msgHeldAgain = "Resumed while %s, held again. Open the gate instead."
