package refresh

import (
	"encoding/json"
	"fmt"
	"time"
)

// Statuses that the provider reports of the refresh of a Machine. A Machine on
// which it has not acted yet has none.
const (
	StatusInProgress = "in-progress"
	StatusDone       = "done"
	StatusFailed     = "failed"
)

// Request says whose request for a refresh a Machine has.
type Request uint8

const (
	// None means that nobody requests a refresh.
	None Request = iota
	// Ours is what we have set and nobody has changed since.
	Ours
	// Others is what somebody else has set. It is never changed.
	Others
)

// Machine is what there is to know of a Machine.
type Machine struct {
	// Name as namespace/name.
	Name string
	// Cluster that the Machine is part of, as namespace/name.
	Cluster string
	// ControlPlane says that the Machine is part of the control plane.
	ControlPlane bool
	// Governed says that the Gate governs the Machine. One that it no longer
	// governs may still have its record.
	Governed bool
	// Deleting says that the Machine is being deleted. Then nothing is done with it.
	Deleting bool
	// Expiry is when the certificates expire, as the provider has written it.
	Expiry string
	// Request for a refresh.
	Request Request
	// Status of the refresh.
	Status string
	// Record of our request, nil if there is none.
	Record *Record
}

// expiry returns when the certificates expire, false if that is not known.
func (m *Machine) expiry() (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, m.Expiry)
	return at, err == nil
}

// Record is what we note on a Machine in the same write as the request. It is
// there as long as the refresh is not over, whatever becomes of the request.
type Record struct {
	// Gate that asked for the refresh, as namespace/name.
	Gate string `json:"gate"`
	// RequestedAt is when it did.
	RequestedAt time.Time `json:"requestedAt"`
	// Expiry of the certificates at that time.
	Expiry time.Time `json:"expiry"`
}

// String returns the record as an annotation has it.
func (r Record) String() string {
	r.RequestedAt, r.Expiry = r.RequestedAt.UTC(), r.Expiry.UTC()
	content, err := json.Marshal(r)
	if err != nil {
		// Only a year of more than four digits does not marshal.
		return fmt.Sprintf(`{"gate":%q}`, r.Gate)
	}
	return string(content)
}

// ParseRecord is the inverse of String. It returns nil for what is no record.
func ParseRecord(value string) *Record {
	record := &Record{}
	if value == "" || json.Unmarshal([]byte(value), record) != nil {
		return nil
	}
	return record
}
