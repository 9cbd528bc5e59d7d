package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// ZoneData is the time zone data of this plugin. Released is zero if unknown.
type ZoneData struct {
	Version  string
	Released time.Time
}

// maxZoneDataMonths is the age above which TimeZoneData warns about time zone data. Clocks change twice a year, and most releases
// announce the next change.
const maxZoneDataMonths = 9

const newerZoneData = "use newer data, see docs/operate/time-zone-data.md"

// TimeZoneData finds time zone data that is old, and leaders whose time zone data differs from this plugin's.
func TimeZoneData(own ZoneData, leases []unstructured.Unstructured, now time.Time) (findings []Finding) {
	if !own.Released.IsZero() && own.Released.AddDate(0, maxZoneDataMonths, 0).Before(now) {
		findings = append(findings, Finding{Warning, "time zone data", fmt.Sprintf("%s of this plugin was released by %s, more than %d months ago: times are wrong in zones whose rules have changed since then",
			own.Version, own.Released.Format(time.DateOnly), maxZoneDataMonths), newerZoneData})
	}
	for i := range leases {
		if version := leaderZoneData(&leases[i], now); version != "" && version != own.Version {
			findings = append(findings, Finding{Warning, "Lease " + leases[i].GetNamespace() + "/" + leases[i].GetName(),
				fmt.Sprintf("its controller has time zone data %s, this plugin has %s: times that the plugin computes can differ from those of the controller", version, own.Version), newerZoneData})
		}
	}
	return findings
}

// leaderZoneData returns the version of the time zone data of the controller that holds a lease, empty if unknown.
func leaderZoneData(l *unstructured.Unstructured, now time.Time) string {
	if !strings.HasPrefix(l.GetName(), leasePrefix) {
		return ""
	}
	if _, held := stateOf(l, now); !held {
		return ""
	}
	return l.GetLabels()[v1alpha1.TimeZoneDataLabel]
}

// SetTimeZoneData sets the time zone data of controllers to the data of the leaders in their namespaces.
func SetTimeZoneData(controllers []Controller, leases []unstructured.Unstructured, now time.Time) {
	for i := range controllers {
		var versions []string
		for j := range leases {
			version := leaderZoneData(&leases[j], now)
			if version != "" && leases[j].GetNamespace() == controllers[i].Namespace && !slices.Contains(versions, version) {
				versions = append(versions, version)
			}
		}
		controllers[i].TimeZoneData = strings.Join(versions, ", ")
	}
}
