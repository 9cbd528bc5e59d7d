// Package receivers takes requests for Gates over HTTP, one verifier per file.
package receivers
