package machinecerts

import (
	"encoding/json"
	"fmt"
	"time"
)

// Statuses that the provider reports for the refresh of a Machine. Before it has acted on the Machine, it reports none.
const (
	StatusInProgress = "in-progress"
	StatusDone       = "done"
	StatusFailed     = "failed"
)

// Request is the requester of the refresh of a Machine.
type Request uint8

const (
	// None means that there is no request.
	None Request = iota
	// Ours means that the controller made the request and that the request is unchanged.
	Ours
	// Others means that another client made the request. The controller never changes it.
	Others
)

// Machine holds the relevant fields of a Machine.
type Machine struct {
	// Name is namespace/name.
	Name string
	// Cluster is the cluster of the Machine, as namespace/name.
	Cluster string
	// ControlPlane is true if the Machine is part of the control plane.
	ControlPlane bool
	// Selected is true if the policy selects the Machine. A Machine that is no longer selected may still have the record of the policy.
	Selected bool
	// Deleting is true if the Machine is being deleted. The controller ignores such a Machine.
	Deleting bool
	// Expiry is the time when the certificates expire, as the provider wrote it.
	Expiry string
	// Request is the request for a refresh.
	Request Request
	// Status is the status of the refresh.
	Status string
	// Record is the record of our request, nil if there is none.
	Record *Record
}

// expiry returns when the certificates expire. It returns false if that is unknown.
func (m *Machine) expiry() (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, m.Expiry)
	return at, err == nil
}

// Record is written to a Machine together with the request. It stays until the refresh has ended, even if the request changes.
type Record struct {
	// Refresh is the MachineCertificateRefresh that requested the refresh, as namespace/name.
	Refresh string `json:"refresh"`
	// RequestedAt is the time of the request.
	RequestedAt time.Time `json:"requestedAt"`
	// Expiry is the expiry of the certificates at that time.
	Expiry time.Time `json:"expiry"`
}

// String returns the record as it is written into an annotation.
func (r Record) String() string {
	r.RequestedAt, r.Expiry = r.RequestedAt.UTC(), r.Expiry.UTC()
	content, err := json.Marshal(r)
	if err != nil {
		// Only a time with a year of more than four digits cannot be marshaled.
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
