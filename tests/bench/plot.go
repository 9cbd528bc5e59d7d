package main

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"
)

// plot is a picture of lines.
type plot struct {
	// file is the name of the picture without its ending.
	file           string
	title          string
	xLabel, yLabel string
	// logarithmic scales have 1, 2, 4, ... or 1, 10, 100, ... the same distance apart.
	logarithmic bool
	series      []series
}

type series struct {
	name   string
	points [][2]float64
}

const (
	plotWidth, plotHeight         = 640.0, 360.0
	plotLeft, plotRight           = 72.0, 16.0
	plotTop, plotBottom           = 40.0, 56.0
	legendHeight, legendCharacter = 16.0, 6.5
)

// colours can be told apart by people who are colour-blind.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// picture is a standalone SVG. It has a background, so that it can be read on dark pages.
var picture = template.Must(template.New("").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" font-family="sans-serif" font-size="11" role="img">
<title>{{.Title}}</title>
<rect width="{{.Width}}" height="{{.Height}}" fill="#ffffff"/>
<text x="{{.Left}}" y="20" font-size="14" font-weight="bold">{{.Title}}</text>
{{range .XTicks}}<path d="M{{.At}} {{$.Top}}V{{$.Bottom}}" stroke="#e0e0e0"/><text x="{{.At}}" y="{{$.TickY}}" text-anchor="middle">{{.Text}}</text>
{{end}}{{range .YTicks}}<path d="M{{$.Left}} {{.At}}H{{$.Right}}" stroke="#e0e0e0"/><text x="{{$.TickX}}" y="{{.At}}" text-anchor="end" dominant-baseline="middle">{{.Text}}</text>
{{end}}<text x="{{.MiddleX}}" y="{{.LabelY}}" text-anchor="middle">{{.XLabel}}</text>
<text transform="translate(14 {{.MiddleY}}) rotate(-90)" text-anchor="middle">{{.YLabel}}</text>
<path d="M{{.Left}} {{.Top}}V{{.Bottom}}H{{.Right}}" fill="none" stroke="#404040"/>
{{range .Lines}}<path d="{{.Path}}" fill="none" stroke="{{.Colour}}" stroke-width="2"/>
{{$colour := .Colour}}{{range .Points}}<circle cx="{{.X}}" cy="{{.Y}}" r="3" fill="{{$colour}}"><title>{{.Text}}</title></circle>
{{end}}<rect x="{{$.LegendX}}" y="{{.LegendY}}" width="{{$.LegendWidth}}" height="16" fill="#ffffff" fill-opacity="0.8"/><text x="{{$.LegendTextX}}" y="{{.LegendTextY}}" fill="{{.Colour}}">● {{.Name}}</text>
{{end}}</svg>
`))

type tick struct {
	At   float64
	Text string
}

type line struct {
	Name, Path, Colour   string
	Points               []point
	LegendY, LegendTextY float64
}

type point struct {
	X, Y float64
	Text string
}

// svg draws a plot.
func (p plot) svg() ([]byte, error) {
	x, xTicks := p.axis(0, plotLeft, plotWidth-plotRight)
	y, yTicks := p.axis(1, plotHeight-plotBottom, plotTop)
	var lines []line
	longest := 0
	for i, s := range p.series {
		l := line{Name: s.name, Colour: colours[i%len(colours)], LegendY: plotTop + legendHeight*float64(i), LegendTextY: plotTop + legendHeight*float64(i) + 12}
		longest = max(longest, len(s.name))
		for j, at := range s.points {
			step := "L"
			if j == 0 {
				step = "M"
			}
			l.Points = append(l.Points, point{x(at[0]), y(at[1]), digits(at[0]) + ": " + digits(at[1])})
			l.Path += fmt.Sprintf("%s%.1f %.1f", step, x(at[0]), y(at[1]))
		}
		lines = append(lines, l)
	}
	var b bytes.Buffer
	err := picture.Execute(&b, map[string]any{
		"Width": plotWidth, "Height": plotHeight, "Title": p.title, "XLabel": p.xLabel, "YLabel": p.yLabel,
		"Left": plotLeft, "Right": plotWidth - plotRight, "Top": plotTop, "Bottom": plotHeight - plotBottom,
		"TickX": plotLeft - 6, "TickY": plotHeight - plotBottom + 16, "LabelY": plotHeight - 14,
		"MiddleX": (plotLeft + plotWidth - plotRight) / 2, "MiddleY": (plotTop + plotHeight - plotBottom) / 2,
		"LegendX": plotLeft + 8, "LegendTextX": plotLeft + 12, "LegendWidth": float64(longest+3) * legendCharacter,
		"XTicks": xTicks, "YTicks": yTicks, "Lines": lines,
	})
	return b.Bytes(), err
}

// axis returns where the values of a coordinate are and what is written there.
func (p plot) axis(coordinate int, from, to float64) (func(float64) float64, []tick) {
	var values []float64
	for _, s := range p.series {
		for _, at := range s.points {
			values = append(values, at[coordinate])
		}
	}
	low, high := slices.Min(values), slices.Max(values)
	scale := func(v float64) float64 { return v }
	var marks []float64
	if p.logarithmic && low > 0 {
		scale = math.Log10
		low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
		if high <= low {
			high = low * 10
		}
		for v := low; v <= high*1.001; v *= 10 {
			marks = append(marks, v)
		}
	} else {
		low = min(low, 0)
		distance := nice((high - low) / 5)
		high = math.Ceil(high/distance) * distance
		for v := low; v <= high*1.001; v += distance {
			marks = append(marks, v)
		}
	}
	place := func(v float64) float64 {
		return math.Round(10*(from+(scale(v)-scale(low))/(scale(high)-scale(low))*(to-from))) / 10
	}
	var ticks []tick
	for _, v := range marks {
		ticks = append(ticks, tick{place(v), digits(v)})
	}
	return place, ticks
}

// nice returns the smallest of 1, 2, 5, 10, ... that is not below a value.
func nice(value float64) float64 {
	if value <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= value {
			return factor * power
		}
	}
	return 10 * power
}
