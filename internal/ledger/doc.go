// Package ledger implements the requests of a Gate: open and close requests that are in force, planned or waiting for approval, their
// approvals, and the records of handled annotations. It is pure: package gate stores the values that it returns.
package ledger
