package timetable

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// localTime is the layout of a local time in a spec.
const localTime = "2006-01-02T15:04"

// dateTime matches a v1alpha1.DateTime, as in the CRD. The first group is everything after the date. The second group is the part of it
// that only times in RFC 3339 have.
var dateTime = regexp.MustCompile(
	`^[0-9-]{10}(T(?:[01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](?:[.][0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]))?)?$`)

// dated compiles a period with from and until. For opens, see period.
func (c *compiler) dated(path *field.Path, p *v1alpha1.Period, zone *schedule.Zone, opens bool) schedule.Period {
	from, form := c.dateTime(path.Child("from"), *p.From)
	until, other := c.dateTime(path.Child("until"), *p.Until)
	switch {
	case form == "" || other == "" || zone == nil:
		return schedule.Period{}
	case form != other:
		c.add(field.Invalid(path, p.Name,
			msgSameForm))
		return schedule.Period{}
	case form == time.DateOnly:
		until = until.AddDate(0, 0, 1)
	}
	if !from.Before(until) {
		c.add(field.Invalid(path.Child("until"), *p.Until, msgUntilLater))
	}
	if form != time.RFC3339 { // if a DST gap moves until before from, the period is empty, like a weekly period on that day
		from, until = time.Unix(zone.Resolve(from.Unix()), 0), time.Unix(zone.Resolve(until.Unix()), 0)
	}
	if opens {
		return schedule.Between(p.Name, schedule.RoundUp(from), until)
	}
	return schedule.Between(p.Name, from, schedule.RoundUp(until))
}

// dateTime parses d. If d has no offset, t is its local time, read as UTC. form is the layout of d, empty if d is invalid.
func (c *compiler) dateTime(path *field.Path, d v1alpha1.DateTime) (t time.Time, form string) {
	if found := dateTime.FindStringSubmatch(string(d)); found != nil {
		switch {
		case found[2] != "":
			form = time.RFC3339
		case found[1] != "":
			form = localTime
		default:
			form = time.DateOnly
		}
	}
	t, err := time.Parse(form, string(d))
	if err != nil || form == "" || t.Year() == 0 {
		c.add(field.Invalid(path, d, msgDateForm))
		return time.Time{}, ""
	}
	return t, form
}
