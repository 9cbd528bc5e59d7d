package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// made is a scenario with made-up results.
var (
	made    = scenario{name: "made", title: "Made up", about: "\nWhat it is about."}
	results = result{
		figures: []figure{{name: "Ratio", value: 1.0456, meaning: "of nothing"}, {name: "Time", value: 12345.6, unit: "s"}},
		tables:  []table{{title: "A table", columns: []string{"targets", "seconds"}, rows: [][]string{{"10", "0.5"}}}},
		plots: []plot{{file: "line", title: "A <line>", xLabel: "targets", yLabel: "s", logarithmic: true,
			series: []series{{"first", [][2]float64{{1, 0.004}, {100, 0.3}}}, {"last", [][2]float64{{1, 0.005}, {100, 70}}}}}},
	}
)

func TestAPageHasAllThatWasMeasured(t *testing.T) {
	folder := t.TempDir()
	another := scenario{name: "other", title: "Another", about: "It is about something else."}
	all := []scenario{made, another}
	published := func(of scenario, machine string, measured *result) string {
		if err := publish(folder, machine, all, of, measured); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(folder, "benchmarks.md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	page := published(made, "On an abacus.", &results)
	section := "\n## Made up\n\n`made`\n\nWhat it is about.\n\nOn an abacus.\n\n| measured | | |\n|---|---:|---|\n| Ratio | 1.05 | of nothing |\n| Time | 12346 s |  |\n\n" +
		"A table\n\n| targets | seconds |\n|---|---|\n| 10 | 0.5 |\n\n![A <line>](benchmarks/line.svg)\n"
	unseen := "\n## Another\n\n`other`\n\nIt is about something else.\n\n*Not measured yet.*\n"
	if want := introduction + section + unseen; page != want {
		t.Errorf("the page is\n%s, want\n%s", page, want)
	}
	measured := strings.Replace(unseen, "*Not measured yet.*", "By hand.", 1)
	if page, want := published(another, "By hand.", &result{}), introduction+section+measured; page != want {
		t.Errorf("then it is\n%s, want\n%s", page, want)
	}
	if page, want := published(made, "On paper.", &result{}), introduction+"\n## Made up\n\n`made`\n\nWhat it is about.\n\nOn paper.\n"+measured; page != want {
		t.Errorf("at last it is\n%s, want\n%s", page, want)
	}
}

func TestAPlotIsAPictureWithAllPointsInItsFrame(t *testing.T) {
	for _, logarithmic := range []bool{true, false} {
		p := results.plots[0]
		p.logarithmic = logarithmic
		picture, err := p.svg()
		if err != nil {
			t.Fatal(err)
		}
		decoder, circles := xml.NewDecoder(strings.NewReader(string(picture))), 0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v: %s", err, picture)
			}
			element, ok := token.(xml.StartElement)
			if !ok || element.Name.Local != "circle" {
				continue
			}
			circles++
			x, y := attribute(t, element, "cx"), attribute(t, element, "cy")
			if x < plotLeft || x > plotWidth-plotRight || y < plotTop || y > plotHeight-plotBottom {
				t.Errorf("a point is at %g, %g", x, y)
			}
		}
		if circles != 4 {
			t.Errorf("%d points: %s", circles, picture)
		}
	}
}

func attribute(t *testing.T, element xml.StartElement, name string) float64 {
	t.Helper()
	i := slices.IndexFunc(element.Attr, func(a xml.Attr) bool { return a.Name.Local == name })
	if i < 0 {
		t.Fatalf("no %s", name)
	}
	value, err := strconv.ParseFloat(element.Attr[i].Value, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestThePageInDocsHasASectionForEachScenarioAndAllItsPictures(t *testing.T) {
	docs := filepath.Join("..", "..", "docs", "contribute")
	content, err := os.ReadFile(filepath.Join(docs, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		if !strings.Contains(string(content), "\n"+heading(s)+"\n\n`"+s.name+"`\n\n"+strings.TrimSpace(s.about)+"\n\n*") {
			t.Errorf("docs/contribute/benchmarks.md has no section %q that is about the same, measure it", s.title)
		}
		if strings.TrimSpace(s.about) == "" {
			t.Errorf("%s does not say what it is about", s.name)
		}
	}
	if strings.Contains(string(content), unmeasured) {
		t.Error("a section of docs/contribute/benchmarks.md has not been measured")
	}
	pictures := regexp.MustCompile(`\]\((benchmarks/[^)]*)\)`).FindAllStringSubmatch(string(content), -1)
	for _, picture := range pictures {
		if _, err := os.Stat(filepath.Join(docs, picture[1])); err != nil {
			t.Error(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(docs, "benchmarks", "*"))
	if err != nil || len(files) == 0 || len(files) != len(pictures) {
		t.Errorf("%d pictures on the page, %d in the folder: %v", len(pictures), len(files), err)
	}
}

func TestThreeDigitsCount(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 3: "3", 1234.56: "1235", 123.456: "123", 1.2345: "1.23", 0.98765: "0.988", 0.0012345: "0.00123", -0.00456: "-0.00456",
		math.NaN(): "–", 1e-9: "0.000000",
	} {
		if got := digits(value); got != want {
			t.Errorf("%g: got %s, want %s", value, got, want)
		}
	}
}

func TestQuantilesAreValuesThatWereMeasured(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, .5: 3, .99: 5, 1: 5} {
		if got := quantile(values, q); got != want {
			t.Errorf("%g: got %g, want %g", q, got, want)
		}
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the median is %g", got)
	}
}

func TestTheExponentOfAPowerIsFound(t *testing.T) {
	for _, want := range []float64{0, 0.5, 1, 2} {
		var points [][2]float64
		for _, x := range []float64{1, 10, 200, 5000} {
			points = append(points, [2]float64{x, 7 * math.Pow(x, want)})
		}
		if got := exponent(points); math.Abs(got-want) > 1e-9 {
			t.Errorf("got %g, want %g", got, want)
		}
	}
}

func TestTheSteepestSlopeIsNotHiddenByAPlateau(t *testing.T) {
	jump := [][2]float64{{1, 0.3}, {2, 0}, {4, 9.6}, {16, 10}, {64, 20}}
	got := steepest(jump)
	if want := math.Log(32) / math.Log(4); got.from != 1 || got.to != 4 || math.Abs(got.value-want) > 1e-9 {
		t.Errorf("got %+v, want %g", got, want)
	}
	if want := "the steepest slope is 2.50, from 1 to 4"; got.String() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := steepest([][2]float64{{1, 10}, {10, 1}}); math.Abs(got.value+1) > 1e-9 {
		t.Errorf("what falls: %+v", got)
	}
	if got := steepest(jump[:1]); !math.IsNaN(got.value) || got.String() != "" {
		t.Errorf("a single point: %+v", got)
	}
}

func TestWhatGoTestPrintsBecomesATable(t *testing.T) {
	got, err := benchmarks("Engine", []byte(`goos: linux
BenchmarkDecide/periods=1-2   	 1000	  1234 ns/op	  56 B/op	  7 allocs/op
BenchmarkCreate/gates=10      	    1	 0.9876 of-no-policy
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"`Decide/periods=1`", "1234", "56", "7", ""}, {"`Create/gates=10`", "", "", "", "0.988"}}
	if !slices.EqualFunc(got.rows, want, slices.Equal) || !slices.Equal(got.columns, []string{"benchmark", "ns/op", "B/op", "allocs/op", "of-no-policy"}) {
		t.Errorf("got %+v", got)
	}
	if _, err := benchmarks("Engine", []byte("PASS\n")); err == nil {
		t.Error("a package without benchmarks is not an error")
	}
}
