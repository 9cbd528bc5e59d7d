package term

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// DefaultDays is the default range of a preview.
const DefaultDays = 30

// Span contains the flags --until and --days.
type Span struct {
	until string
	days  int
	// maxDays is the largest number of days.
	maxDays int
	cmd     *cobra.Command
}

// NewSpan adds the flags of a span to a command. about is the first part of the help texts.
func NewSpan(cmd *cobra.Command, byDefault, most int, about string) *Span {
	f := &Span{maxDays: most, cmd: cmd}
	cmd.Flags().StringVar(&f.until, "until", "", about+"until when, such as \"friday 17:00\", 2026-12-24, 7d, or in RFC 3339.")
	cmd.Flags().IntVar(&f.days, "days", byDefault, fmt.Sprintf("%show many days, from 1 to %d, instead of --until.", about, most))
	return f
}

// IsSet returns whether one of the flags is set, and the name of that flag.
func (f *Span) IsSet() (name string, ok bool) {
	for _, name := range []string{"until", "days"} {
		if f.cmd.Flags().Changed(name) {
			return "--" + name, true
		}
	}
	return "", false
}

// Check returns an error if the flags exclude each other or are out of range.
func (f *Span) Check() error {
	switch {
	case f.cmd.Flags().Changed("until") && f.cmd.Flags().Changed("days"):
		return errors.New("--until and --days exclude each other: use one of them")
	case f.days < 1 || f.days > f.maxDays:
		return fmt.Errorf("--days %d: use a number from 1 to %d", f.days, f.maxDays)
	}
	return nil
}

// ParseSpan returns the range from --from to the end of a span.
func ParseSpan(t *Terminal, from string, f *Span) (r preview.Range, err error) {
	if err := f.Check(); err != nil {
		return r, err
	}
	if r, err = parseRange(t, from, f.until); err == nil && f.until == "" {
		r.Until = r.From.AddDate(0, 0, f.days)
	}
	if longest := r.From.AddDate(0, 0, f.maxDays); err == nil && r.Until.After(longest) {
		return r, fmt.Errorf("--until %q: at most %d days are shown, until %s", f.until, f.maxDays, FormatTime(longest))
	}
	return r, err
}

// parseRange parses --from and --until. A time without an offset is in the time zone of the user.
func parseRange(t *Terminal, from, until string) (r preview.Range, err error) {
	now, err := t.Now()
	if err != nil {
		return r, err
	}
	r.From = now.Truncate(time.Second)
	if from != "" {
		if r.From, err = ReadTime(normalize(from), r.From); err != nil {
			return r, fmt.Errorf("--from must be a time, and %q %w", from, err)
		}
	}
	r.Until = r.From.AddDate(0, 0, DefaultDays)
	if until != "" {
		if day, _, _ := strings.Cut(normalize(until), " "); from != "" && (day == "today" || day == "tomorrow") {
			return r, fmt.Errorf("--until must be a time: with --from, the day of %q is ambiguous, write the date", until)
		}
		if r.Until, err = ReadTime(normalize(until), r.From); err != nil {
			return r, fmt.Errorf("--until must be a time, and %q %w", until, err)
		}
	}
	if !r.From.Before(r.Until) {
		return r, errors.New("--until must be later than --from")
	}
	return r, nil
}
