package preview

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// Dimensions of the drawing, in pixels.
const (
	svgWidth    = 1000
	svgLabels   = 240
	svgBars     = svgWidth - svgLabels - 20
	svgTop      = 56
	svgRow      = 36
	svgBar      = 22
	svgLegend   = 44
	svgLetter   = 7
	svgDayWidth = 64
)

// style contains the colors for light and dark backgrounds. Open and closed also have different patterns, for users who cannot
// distinguish colors.
const style = `<style>
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .background { fill: #ffffff } .opened { fill: #1a7f37 } .closed { fill: #eaeef2 } .lines { stroke: #57606a; stroke-width: 2 }
  .bar { stroke: #57606a } .day { stroke: #d0d7de } .word { fill: #ffffff; font-weight: bold } .patch { fill: #eaeef2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .background { fill: #0d1117 } .opened { fill: #238636 } .closed { fill: #21262d } .lines { stroke: #8b949e }
    .bar { stroke: #8b949e } .day { stroke: #30363d } .word { fill: #ffffff } .patch { fill: #21262d }
  }
</style>
<defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
  <rect class="closed" width="8" height="8"/><line class="lines" x1="0" y1="0" x2="0" y2="8"/>
</pattern></defs>
`

// SVG draws a report with a row for each Gate and a bar for each interval. Days are in the time zone of the range.
func (r *Report) SVG(w io.Writer, in Range) error {
	d := &drawing{in: in}
	height := svgTop + svgRow*len(r.Gates) + svgLegend
	title := fmt.Sprintf("Gates from %s until %s", d.time(in.From), d.time(in.Until))
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n",
		svgWidth, height, svgWidth, height)
	d.add("<title id=\"title\">%s</title>\n%s", html.EscapeString(title), style)
	d.add("<rect class=\"background\" width=\"%d\" height=\"%d\"/>\n", svgWidth, height)
	d.add("<text x=\"10\" y=\"20\">%s</text>\n", html.EscapeString(title))
	d.axis(svgTop + svgRow*len(r.Gates))
	for row, t := range r.Gates {
		d.gate(t, svgTop+svgRow*row)
	}
	d.legend(height - svgLegend + 14)
	d.add("</svg>\n")
	_, err := io.WriteString(w, d.text.String())
	return err
}

// drawing is the state of a drawing in progress.
type drawing struct {
	text strings.Builder
	in   Range
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.text, format, args...) }

func (d *drawing) time(at time.Time) string {
	return at.In(d.in.From.Location()).Format("Mon 2006-01-02 15:04 MST")
}

// x returns the x-coordinate of an instant.
func (d *drawing) x(at time.Time) float64 {
	return svgLabels + svgBars*d.in.share(at)
}

// axis draws a line at each midnight, and as many dates as fit.
func (d *drawing) axis(bottom int) {
	last := -float64(svgDayWidth)
	for _, day := range midnights(d.in, svgBars/3) {
		x := d.x(day)
		d.add("<line class=\"day\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", x, svgTop-8, x, bottom)
		if x-last >= svgDayWidth && x <= svgWidth-svgDayWidth+20 {
			d.add("<text x=\"%.1f\" y=\"%d\">%s</text>\n", x+2, svgTop-12, day.Format("Mon 01-02"))
			last = x
		}
	}
}

func (d *drawing) gate(t Timeline, y int) {
	name := t.Gate
	if runes := []rune(name); len(runes) > (svgLabels-20)/svgLetter {
		name = string(runes[:(svgLabels-20)/svgLetter-1]) + "…"
	}
	d.add("<g><text x=\"10\" y=\"%d\">%s<title>%s</title></text>\n", y+16, html.EscapeString(name), html.EscapeString(t.Gate))
	for _, i := range t.Intervals {
		x, width := d.x(i.From.Time), d.x(i.Until.Time)-d.x(i.From.Time)
		d.add("<g><title>%s</title><rect class=\"bar %s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"%s/>", html.EscapeString(fmt.Sprintf("%s is %s from %s until %s: %s",
			t.Gate, i.State, d.time(i.From.Time), d.time(i.Until.Time), i.ShortReason())), html.EscapeString(i.State), x, y, width, svgBar, fill(i.State))
		if room := float64(len(i.State)*svgLetter + 12); width >= room {
			d.word(i.State, x+width/2, y)
		}
		d.add("</g>\n")
	}
	d.add("</g>\n")
}

// word writes a state on its bar. If the bar has a pattern, the text gets a background.
func (d *drawing) word(state string, x float64, y int) {
	class := "word"
	if fill(state) != "" {
		class = "shut"
		half := float64(len(state)*svgLetter)/2 + 2
		d.add("<rect class=\"patch\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"16\"/>", x-half, y+3, 2*half)
	}
	d.add("<text class=\"%s\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", class, x, y+15, html.EscapeString(state))
}

// fill returns the pattern for states other than open. It overrides the style.
func fill(state string) string {
	if state == "opened" {
		return ""
	}
	return ` style="fill:url(#hatch)"`
}

func (d *drawing) legend(y int) {
	for i, state := range []string{"opened", "closed"} {
		x := svgLabels + 120*i
		d.add("<rect class=\"bar %s\" x=\"%d\" y=\"%d\" width=\"30\" height=\"14\"%s/><text x=\"%d\" y=\"%d\">%s</text>\n", state, x, y, fill(state), x+36, y+11, state)
	}
}
