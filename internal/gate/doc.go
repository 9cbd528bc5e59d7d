// Package gate turns API objects into schedules and requests into decisions.
// It has no client and no clock: what it returns depends on its arguments only.
package gate
