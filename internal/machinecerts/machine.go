package machinecerts

import (
	"encoding/json"
	"fmt"
	"time"
)

// Statuses that the provider reports for the refresh of a Machine. It reports none until
// it has acted on the Machine.
const (
	StatusInProgress = "in-progress"
	StatusDone       = "done"
	StatusFailed     = "failed"
)

// Request says who requested the refresh of a Machine, if anybody.
type Request uint8

const (
	// None means that there is no request.
	None Request = iota
	// Ours means that we made the request and nobody has changed it since.
	Ours
	// Others means that somebody else made the request. It is never changed.
	Others
)

// Machine is what matters of a Machine.
type Machine struct {
	// Name as namespace/name.
	Name string
	// Cluster that the Machine is part of, as namespace/name.
	Cluster string
	// ControlPlane says that the Machine is part of the control plane.
	ControlPlane bool
	// Selected means that the policy selects the Machine. A Machine that it no longer
	// selects may still have its record.
	Selected bool
	// Deleting says that the Machine is being deleted. Then it is left alone.
	Deleting bool
	// Expiry is when the certificates expire, as the provider wrote it.
	Expiry string
	// Request for a refresh.
	Request Request
	// Status of the refresh.
	Status string
	// Record of our request, nil if there is none.
	Record *Record
}

// expiry returns when the certificates expire, false if that is unknown.
func (m *Machine) expiry() (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, m.Expiry)
	return at, err == nil
}

// Record is what we note on a Machine in the same write as the request. It stays until the
// refresh is over, no matter what happens to the request.
type Record struct {
	// Refresh is the MachineCertificateRefresh that requested it, as namespace/name.
	Refresh string `json:"refresh"`
	// RequestedAt is the time of the request.
	RequestedAt time.Time `json:"requestedAt"`
	// Expiry of the certificates at that time.
	Expiry time.Time `json:"expiry"`
}

// String returns the record as it is written into an annotation.
func (r Record) String() string {
	r.RequestedAt, r.Expiry = r.RequestedAt.UTC(), r.Expiry.UTC()
	content, err := json.Marshal(r)
	if err != nil {
		// Only a year of more than four digits does not marshal.
		return fmt.Sprintf(`{"refresh":%q}`, r.Refresh)
	}
	return string(content)
}

// ParseRecord is the inverse of String. It returns nil if the value is not a record.
func ParseRecord(value string) *Record {
	record := &Record{}
	if value == "" || json.Unmarshal([]byte(value), record) != nil {
		return nil
	}
	return record
}
