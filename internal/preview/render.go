package preview

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/internal/format"
)

// Table writes a report as a table with one interval per line. Times are formatted as in RFC 3339, in zone.
func (r *Report) Table(w io.Writer, zone *time.Location) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "GATE\tFROM\tUNTIL\tSTATE\tREASON\tDECIDED BY") //nolint:errcheck // Flush returns it
	for _, t := range r.Gates {
		for _, i := range t.Intervals {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Gate, in(zone, i.From), in(zone, i.Until), i.State, i.Reason, format.Printable(i.By())) //nolint:errcheck // as above
		}
	}
	return table.Flush()
}

func in(zone *time.Location, at metav1.Time) string { return at.In(zone).Format(time.RFC3339) }
