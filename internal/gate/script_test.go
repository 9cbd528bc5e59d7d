package gate_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// runScripts runs each script as a test of its own. Steps are separated by semicolons or line breaks, and times are of 23 November 2026:
//
//	opened 1h                                 the Gate is opened by default, with spec.window
//	window 2h | window none                   spec.window changes
//	invalid | stripped                        the spec becomes invalid | all annotations are removed
//	12:00 alice closes [TIME][/DURATION]      the controller handles a request, for 12:00 unless it has a time
//	alice writes close TIME[/DURATION]        a request that is not handled yet
//	12:00 ops/ci calls open [/DURATION]       a GateReceiver writes a request; "= TIME" is the annotation then, else it changes
//	approvals 2                               open requests need approvals, and the API server stamps names
//	12:00 bob,carol approves                  approvals of all requests
//	12:00 is closed by alice until 13:00      the decision: also requested TIME, reset TIME, recheck TIME, last NAME; "= TEXT" is its message
//	12:00 alice opens /1h only a b            a request that is limited to the Kustomizations a and b, here and in "writes" and "calls"
//	12:00 targets a,b opened                  the state of these Kustomizations, after the controller has handled what is new
//	12:00 reconciles closed                   the same, after the controller has handled what is new
//
// A dash is a request without a name. "! TEXT" is a refusal.
func runScripts(t *testing.T, scripts map[string]string) {
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			s := scriptRun{T: t}
			for step := range strings.FieldsFuncSeq(script, func(r rune) bool { return r == ';' || r == '\n' }) {
				if step = strings.TrimSpace(step); step != "" {
					s.step(step)
				}
			}
		})
	}
}

type scriptRun struct {
	*testing.T
	g      *v1alpha1.Gate
	stamps ledger.Stamps
}

func (s *scriptRun) handle(now time.Time) []ledger.Request {
	return gate.ApplyRequests(s.g, s.stamps, now)
}

var clock = regexp.MustCompile(`^(\d\dT)?\d\d:\d\d(:\d\d(\.\d+)?)?$`)

// timeStamp completes a time of day, or of a day of November.
func timeStamp(s string) string {
	if !clock.MatchString(s) {
		return s
	}
	if !strings.Contains(s, "T") {
		s = "23T" + s
	}
	if strings.Count(s, ":") == 1 {
		s += ":00"
	}
	return "2026-11-" + s + "Z"
}

// requestValue completes the time of a request.
func requestValue(now string, words []string) string {
	words, targets := cutTargets(words)
	at, duration, hasDuration := strings.Cut(strings.Join(words, ""), "/")
	if at == "" {
		at = now
	}
	value := timeStamp(at)
	if hasDuration {
		value += "/" + duration
	}
	for _, t := range targets {
		value += ",only=" + t.String()
	}
	return value
}

// cutTargets cuts the targets after the word only.
func cutTargets(words []string) (before []string, targets []v1alpha1.RequestTarget) {
	i := slices.Index(words, "only")
	if i < 0 {
		return words, nil
	}
	for _, name := range words[i+1:] {
		targets = append(targets, v1alpha1.RequestTarget{Kind: "Kustomization", Name: name})
	}
	return words[:i], targets
}

func receiver(who string) string {
	if strings.Contains(who, "/") {
		return "GateReceiver " + who
	}
	return who
}

func (s *scriptRun) step(step string) {
	action, refusal, _ := strings.Cut(step, " ! ")
	action, text, _ := strings.Cut(action, " = ")
	words := strings.Fields(action)
	switch {
	case words[0] == "opened", words[0] == "closed":
		s.g = closed()
		s.g.Spec.Default = v1alpha1.State(words[0])
		s.window(words[1:])
	case words[0] == "window":
		s.window(words[1:])
	case words[0] == "invalid":
		was(s.g, isOpened, "", "")
		invalid(&s.g.Spec)
	case words[0] == "stripped":
		s.g.Annotations = nil
	case words[0] == "approvals":
		s.stamps, s.g.Spec.Approvals = ledger.Stamped, nil
		if words[1] != "0" {
			eyesOn(int32(words[1][0] - '0'))(&s.g.Spec)
		}
	case len(words) > 2 && words[2] == "approves":
		news := approve(s.g, utc(timeStamp(words[0])), strings.Split(words[1], ",")...)
		if refused := slices.ContainsFunc(news, func(r ledger.Request) bool { return r.Err != nil }); refused != (refusal != "") || refused && (len(news) > 1 || news[0].Err.Error() != refusal) {
			s.Errorf("%s: got %v", step, news)
		}
	case words[1] == "writes":
		s.annotate(words[0], v1alpha1.RequestAction(words[2]), requestValue("", words[3:]))
	case words[1] == "targets":
		s.g, _ = resolved(s.g, utc(timeStamp(words[0])))
		for name := range strings.SplitSeq(words[2], ",") {
			obj := kustomization(name)
			obj.SetNamespace(s.g.Namespace)
			g := verdict.Scope{}.ForTarget(s.g, obj)
			if effect := verdict.Governing("", g, utc(timeStamp(words[0]))).Effect; effect != map[string]verdict.Effect{"opened": verdict.Open, "closed": verdict.Closed}[words[3]] {
				s.Errorf("%s: %s has effect %d, requests %+v, overlays %+v", step, name, effect, s.g.Status.Requests, s.g.Status.Overlays)
			}
		}
	case words[1] == "is":
		s.decides(step, utc(timeStamp(words[0])), words[2:], text)
	case words[1] == "reconciles":
		now := utc(timeStamp(words[0]))
		handled := s.handle(now)
		if refusal != "" && (len(handled) != 1 || handled[0].Err == nil || !strings.Contains(handled[0].Value+" "+handled[0].Err.Error(), refusal) ||
			handled[0].Annotation != string(handled[0].Action)+".gate.fluxcd.io/requestedAt") {
			s.Errorf("%s: handled %+v", step, handled)
		}
		s.decides(step, now, words[2:], text)
	case words[2] == "calls":
		s.calls(step, words, text, refusal)
	case words[2] == "opens", words[2] == "closes":
		s.requests(step, words, refusal)
	default:
		s.Fatalf("unknown step %q", step)
	}
}

func (s *scriptRun) window(words []string) {
	s.g.Spec.Window = nil
	if len(words) > 0 && words[0] != "none" {
		d, err := time.ParseDuration(words[0])
		if err != nil {
			s.Fatal(err)
		}
		s.g.Spec.Window = duration(d)
	}
}

func (s *scriptRun) annotate(who string, action v1alpha1.RequestAction, value string) {
	annotate(s.g, action, value)
	if who != "-" {
		by(s.g, action, receiver(who), "")
	}
}

func (s *scriptRun) requests(step string, words []string, refusal string) {
	action := map[string]v1alpha1.RequestAction{"opens": v1alpha1.RequestOpen, "closes": v1alpha1.RequestClose}[words[2]]
	value := requestValue(words[0], words[3:])
	s.annotate(words[1], action, value)
	before := s.g.Status.DeepCopy().Requests
	handled := s.handle(utc(timeStamp(words[0])))
	if len(handled) != 1 || handled[0].Action != action || handled[0].Value != value {
		s.Fatalf("%s: handled %+v", step, handled)
	}
	switch err := handled[0].Err; {
	case refusal == "" && err != nil:
		s.Fatalf("%s: refused: %v", step, err)
	case refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)):
		s.Errorf("%s: got %v", step, err)
	case refusal != "" && fmt.Sprint(before) != fmt.Sprint(s.g.Status.Requests):
		s.Errorf("%s: a refused request changes %+v to %+v", step, before, s.g.Status.Requests)
	}
}

// calls has a GateReceiver write a request.
func (s *scriptRun) calls(step string, words []string, want, refusal string) {
	r := ledger.Request{Action: v1alpha1.RequestAction(words[3]), By: receiver(words[1]), Reason: "tests passed"}
	words, r.Targets = cutTargets(words)
	if len(words) > 4 {
		d, err := time.ParseDuration(words[4][1:])
		if err != nil {
			s.Fatal(err)
		}
		r.Window = duration(d)
	}
	before := ledger.Requested(s.g, r.Action)
	err := ledger.WriteRequest(s.g, r, utc(timeStamp(words[0])))
	kind, refusal, _ := strings.Cut(refusal, " ")
	sentinel := map[string]error{"": nil, "ahead": ledger.ErrAhead, "closed": ledger.ErrClosedByPeople, "unhandled": ledger.ErrUnhandled}[kind]
	if !errors.Is(err, sentinel) || err != nil && !strings.Contains(err.Error(), refusal) {
		s.Fatalf("%s: got %v", step, err)
	}
	switch got := ledger.Requested(s.g, r.Action); {
	case err != nil && got != before, err == nil && want == "" && got == before, want != "" && got != timeStamp(want):
		s.Errorf("%s: the annotation is %q, before %q", step, got, before)
	}
}

func (s *scriptRun) decides(step string, now time.Time, words []string, message string) {
	d := gate.Decide(s.g, now)
	got := []string{string(d.State)}
	if message != "" && d.Message != message {
		s.Errorf("%s: the message is %s", step, d.Message)
	}
	at := func(at *metav1.Time) string {
		if at == nil {
			return "never"
		}
		return stamp(at.Time)
	}
	for i := 1; i+1 < len(words); i += 2 {
		value := ""
		switch words[i] {
		case "by":
			if value = "-"; d.Request != nil {
				value = strings.TrimPrefix(d.Request.By, "GateReceiver ")
			}
			if words[i+1] != "-" && len(d.Errors) == 0 && !strings.HasSuffix(d.Message, " by "+receiver(words[i+1])) {
				s.Errorf("%s: the message is %s", step, d.Message)
			}
		case "last":
			last := s.g.LatestRequest()
			value = strings.TrimPrefix(last.RequestedBy, "GateReceiver ")
			if value == "" && last.Message == "" && last.Source == v1alpha1.SourceAnnotation {
				value = "-"
			}
		case "until":
			if value = "never"; d.Next != nil {
				value = stamp(d.Next.At.Time)
				if before, then := gate.Decide(s.g, d.Next.At.Add(-1)), gate.Decide(s.g, d.Next.At.Time); before.State != d.State || then.State == d.State {
					s.Errorf("%s: %s before %s, then %s", step, before.State, value, then.State)
				}
			}
		case "recheck":
			value = stamp(d.Recheck)
		case "requested":
			value = at(d.RequestedAt)
		case "reset":
			value = at(d.ResetToDefaultAt)
		default:
			s.Fatalf("%s: unknown %q", step, words[i])
		}
		got = append(got, words[i], value)
	}
	for i := range words {
		words[i] = timeStamp(words[i])
	}
	if fmt.Sprint(got) != fmt.Sprint(words) {
		s.Errorf("%s: got %s: %s; accepted %+v", step, got, d.Message, s.g.Status.Requests)
	}
}
