package expression

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// large returns an object as large as the largest webhook: a million numbers and a text.
func large() map[string]any {
	numbers, objects := make([]any, 500_000), make([]any, 300_000)
	for i := range numbers {
		numbers[i] = float64(i)
	}
	for i := range objects {
		objects[i] = map[string]any{}
	}
	return map[string]any{"req": map[string]any{
		"numbers": numbers, "objects": objects, "text": strings.Repeat("a", 3<<20), "short": "a",
	}}
}

// Without bounds, each expression would run for minutes to years, or take more memory than the machine has.
func TestExpressionsAreBoundedInTimeAndMemory(t *testing.T) {
	data := large()
	grow := strings.Repeat("a", 400)
	digits := "[" + strings.Repeat("1,", 100) + "1]"
	nested := digits + ".map(x, " + digits + ".map(y, req.objects))" // its lists share their elements
	for name, text := range map[string]string{
		"loops that swallow the interrupt":   "req.objects.all(x, req.objects.all(y, x == y))",
		"three loops":                        "req.objects.all(x, req.objects.all(y, req.objects.all(z, x == z)))",
		"loops that make a list":             "req.objects.map(x, req.objects.map(y, req.objects)).size() == 1",
		"loops over what is in the text":     digits + ".all(a, " + digits + ".all(b, " + digits + ".all(c, " + digits + ".all(d, a == d))))",
		"a text that grows by each call":     "string(req.short)" + strings.Repeat(".replace('a', '"+grow+"')", 9) + " == ''",
		"a long text that grows by one call": "string(req.text).replace('a', '" + grow + "') == ''",
		"nothing replaced":                   "string(req.text).replace('', string(req.text), 100000) == ''",
		"a long text between all elements":   "req.objects.map(x, 'a').join(string(req.text)) == ''",
		"a long text many times in one":      "'" + strings.Repeat("%s", 300) + "'.format(req.objects.map(x, req.text)) == ''",
		"a text that is doubled":             strings.Repeat("[", 1) + "'aaaaaaaaaaaaaaaa']" + strings.Repeat(".map(s, s+s+s+s+s+s+s+s)", 12) + "[0] == ''",
		"all pairs of two sets":              "sets.contains(req.numbers, req.numbers)",
		"a set that is not part of another":  "sets.intersects(req.numbers, req.numbers.map(n, -1.5))",
		"letters, many times":                "[" + strings.Repeat("string(req.text).split(''),", 90) + "[]].size() == 1",
		"a pattern over a long text":         "string(req.text).matches('(a|b|ab)*(a|b)+[a-z]{0,900}c$')",
		"a pattern from the object":          "string(req.text).matches(string(req.short) + '{0,900}b$')",
		"a pattern with many states":         "string(req.short).matches('" + strings.Repeat("a{1000}", 500) + "')",
		"a pattern over all elements":        "req.objects.all(x, !string(req.short).matches('(a{30}){30}b{900}'))",
		"patterns that swallow the error":    digits + ".all(x, " + digits + ".exists(y, string(req.text).matches('a*b')))",
		"a text in the text":                 "string(req.text).indexOf(string(req.text).substring(1500000) + 'b') == 1",
		"a text in the text, from behind":    "string(req.text).lastIndexOf('b' + string(req.text).substring(1500000)) == 1",
		"one letter after the other":         digits + ".all(x, " + digits + ".exists(y, string(req.text).charAt(y) == 'b'))",
		"the length of it, many times":       digits + ".all(x, " + digits + ".exists(y, size(string(req.text)) == y))",
		"a list of lists of all, formatted":  "'%s'.format([" + nested + "]) == ''",
		"lists of lists of all, compared":    nested + " == " + nested,
		"lists of lists of all, not equal":   nested + " != " + nested,
		"a list of lists in another one":     nested + " in [" + nested + "]",
		"a set of lists of lists":            "sets.contains([" + nested + "], [" + nested + "])",
		"base64 of base64":                   strings.Repeat("base64.encode(bytes(", 60) + "req.short" + strings.Repeat("))", 60) + " == ''",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := NewBool(text, "req")
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			got, err := e.Evaluate(context.Background(), data)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			t.Log(took, (after.TotalAlloc-before.TotalAlloc)>>20, "MiB")
			if err == nil {
				t.Errorf("got %t, want an error", got)
			} else if len(err.Error()) > len(text)+1024 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			// An evaluation takes a second on an idle machine, and minutes without bounds.
			if took > time.Minute {
				t.Errorf("took %s", took)
			}
			if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 512 {
				t.Errorf("took %d MiB of memory", made)
			}
		})
	}
}

// A function that an update of CEL adds may do all work in a single call.
func TestFunctionsOfFluxAreDefined(t *testing.T) {
	env, err := bounded()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range env.Functions() {
		if name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z' {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := strings.Fields(`base64.decode base64.encode bool bytes charAt contains double duration dyn endsWith first format getDate getDayOfMonth
		getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds hasValue in indexOf int join last lastIndexOf lowerAscii
		matches optional.none optional.of optional.ofNonZeroValue optional.unwrap or orValue replace reverse sets.contains sets.equivalent sets.intersects size
		split startsWith string strings.quote substring timestamp trim type uint unwrapOpt upperAscii value`)
	if !slices.Equal(names, want) {
		t.Errorf("the functions are %s: does each have an effort, or a cost?", names)
	}
}

func TestUsualExpressionsAreFarFromBounds(t *testing.T) {
	data := large()
	for _, text := range []string{
		"req.numbers.exists(n, n == 1000.0)",
		"req.objects.size() == 300000",
		"string(req.text).startsWith('aaa') && string(req.text).size() == 3145728",
		"['a', 'b'].join('-') == 'a-b' && '%s is %d'.format(['a', 1]) == 'a is 1'",
		"sets.contains(['a', 'b'], ['a']) && sets.equivalent(['a'], ['a', 'a']) && !sets.intersects(['a'], ['b'])",
		"'v1.2.3'.matches('^v[0-9]{1,3}([.][0-9]+){2}$') && matches('main', 'main|release-.*') && !'a'.matches('b')",
		"'a,b'.indexOf(',') == 1 && 'a,b,'.lastIndexOf(',') == 3 && 'a,b'.indexOf(',', 2) == -1",
		"['a', 'b'].all(x, x in ['a', 'b']) && req.numbers == req.numbers && 1.0 in req.numbers && 'text' in req && req != req.numbers",
		"string(req.text).lowerAscii().size() == 3145728",
		"'a-b'.replace('-', '_', 1) == 'a_b' && ['a', 'b'].join() == 'ab' && 'a,b'.split(',').size() == 2",
		"req.?missing.orValue('') == '' && base64.encode(b'a') == 'YQ=='",
	} {
		e, err := NewBool(text, "req")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, err := e.Evaluate(context.Background(), data)
		if err != nil || !got {
			t.Errorf("%s: got %t, %v", text, got, err)
		}
		t.Log(time.Since(start), text)
	}
}
