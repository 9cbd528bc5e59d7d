// Package ledger holds the requests of a Gate: opens and closes that are in force, planned or waiting for approval, the approvals that they
// have, and the records of what was handled. It is pure: it reads a Gate and returns values, and the package gate stores them.
package ledger
