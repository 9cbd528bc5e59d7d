// Package gate decides on Gates and GateExceptions, and computes their status. It has no client and no clock: results depend on the
// arguments only.
package gate
