package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// roots returns Mozilla's root certificates as a PEM file, without those that are trusted only for certificates issued before a date,
// because a PEM file cannot express that.
func roots() []byte {
	var file bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer returns no errors
		}
	}
	return file.Bytes()
}
