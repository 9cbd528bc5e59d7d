package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxWords is how long a sentence may be. Guides to plain English ask for 15 to 20 words on average: one of twice as many has two thoughts.
	maxWords = 40
	// maxAverage is for all sentences of a page. It is above what those guides ask for, because most of ours name objects and fields.
	maxAverage = 25
	// minSentences is how many make an average that says something.
	minSentences = 5
)

// A rule says what to write in place of what its pattern matches. It is about all kinds of passages, unless it names some.
type rule struct {
	pattern, unless *regexp.Regexp
	say             string
	kinds           []kind
}

var texts = []kind{paragraph, comment, message}

// rules are about sentences. Code in them is replaced by `x`.
var rules = []rule{
	word(`anew`, "again"),
	word(`whatever`, "any, all"),
	word(`but for`, "except, without"),
	word(`of which`, "whose, or a sentence of its own"),
	word(`(?:is|are) told to`, "must"),
	word(`in nobody's name`, "without a name"),
	word(`there(?:by|of|in|to)|here(?:by|of|in)|where(?:by|in|of|upon)`, "so, of it, in which"),
	word(`ceas(?:e|es|ed|ing)`, "stop"),
	word(`in vain`, "without effect"),
	word(`be it`, "whether"),
	word(`shall`, "must, should"),
	word(`utili[sz](?:e|es|ed|ing)|leverag(?:e|es|ed|ing)`, "use"),
	word(`simply|please`, "nothing"),
	word(`e\.g\.|i\.e\.`, "such as, that is"),
	{pattern: regexp.MustCompile(`(?i), say\b[^ ]|, say$`), say: "for example, such as"},
	{
		pattern: regexp.MustCompile(`(?i)\bjust\b`), say: "only, or nothing",
		unless: regexp.MustCompile(`(?i)\b(?:has|have|had|is|was|were) just\b|\bjust (?:now|before|after)\b`),
	},
	{
		pattern: regexp.MustCompile(`(?i)\b(?:is|are|was|were) no\b`), say: `"is not a"`,
		unless: regexp.MustCompile(`(?i)\bthere (?:is|are|was|were) no\b|\b(?:is|are|was|were) no (?:longer|more|less|fewer|later|earlier|one)\b`),
	},
	{pattern: regexp.MustCompile(`^(?:What|Who) .*\.["')]*$`), say: "a noun as the subject", kinds: texts},
	{
		pattern: regexp.MustCompile(`\bwhat [a-z]+s (?:has|is|stays|comes|stops|waits|counts|gets|goes|remains|keeps|runs)\b`), say: "a noun as the subject",
		unless: regexp.MustCompile(`\bwhat (?:is|has|was|this|its|previous|status)\b`), kinds: texts,
	},
	{pattern: regexp.MustCompile(`\S  +\S`), say: "one space", kinds: []kind{paragraph, heading, comment}},
	{pattern: regexp.MustCompile(`[a-z]!(?: |$)`), say: "a full stop"},
	{pattern: regexp.MustCompile(` [A-Z][a-z]+\b`), unless: names, say: "small letters, except in names", kinds: []kind{heading}},
}

// names are written with a capital also in a heading, beside those with one in the middle, such as GitRepository. So is what begins a sentence.
var names = regexp.MustCompile(`[:.?!] [A-Z]|\b(?:Gates?|Certificates?|Machines?|Kustomizations?|Secrets?|Pods?|Deployments?|CronJobs?|Flux|Git|Kubernetes|Helm|Flagger|Rollouts|` +
	`Argo|Kargo|Prometheus|Grafana|Slack|Teams|Cluster|Audit|Debian|Linux|Go|Mondays?|Fridays?|Sundays?|Christmas|December|January)\b`)

// word returns a rule about words in any spelling.
func word(pattern, say string) rule {
	return rule{pattern: regexp.MustCompile(`(?i)(?:^|\W)(?:` + pattern + `)(?:\W|$)`), say: say}
}

// judge returns what is hard to read in a file.
func judge(path string, passages []passage) (findings []string) {
	sentences, words := 0, 0
	for _, p := range passages {
		for _, s := range sentencesOf(p) {
			n := len(strings.Fields(s))
			if p.kind == paragraph && strings.ContainsAny(s[max(0, len(s)-1):], ".?!:") {
				sentences, words = sentences+1, words+n
			}
			if n > maxWords {
				findings = append(findings, fmt.Sprintf("%s:%d: a sentence of %d words, at most %d: %s", path, p.line, n, maxWords, s))
			}
			for _, r := range rules {
				if found, breaks := r.breaks(p.kind, s); breaks {
					findings = append(findings, fmt.Sprintf("%s:%d: %q: write %s: %s", path, p.line, found, r.say, s))
				}
			}
		}
	}
	if sentences >= minSentences && words >= maxAverage*sentences {
		findings = append(findings, fmt.Sprintf("%s:1: %d words a sentence on average, fewer than %d are easy to read", path, words/sentences, maxAverage))
	}
	return findings
}

// breaks returns what a sentence has that it should not have.
func (r rule) breaks(kind kind, s string) (string, bool) {
	if r.kinds != nil && !slices.Contains(r.kinds, kind) {
		return "", false
	}
	var allowed [][]int
	if r.unless != nil {
		allowed = r.unless.FindAllStringIndex(s, -1)
	}
	for _, at := range r.pattern.FindAllStringIndex(s, -1) {
		if !slices.ContainsFunc(allowed, func(fine []int) bool { return fine[0] < at[1] && at[0]+1 < fine[1] }) {
			return strings.TrimSpace(s[at[0]:at[1]]), true
		}
	}
	return "", false
}

var (
	code   = regexp.MustCompile("``.+?``|`[^`]+`")
	link   = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	markup = regexp.MustCompile(`</?[a-z][^>]*>|\*\*`)
	end    = regexp.MustCompile(`[.?!]["')]*\s+`)
)

// sentencesOf returns the sentences of a passage, as they are read: with one word for each piece of code, and without addresses. A cell
// has no room for a list, so semicolons are between its items.
func sentencesOf(p passage) (sentences []string) {
	text := code.ReplaceAllString(p.text, "`x`")
	text = strings.TrimSpace(markup.ReplaceAllString(link.ReplaceAllString(text, "$1"), ""))
	if first, rest, more := strings.Cut(text, "; "); more && p.kind == cell {
		return append(sentencesOf(passage{cell, p.line, first}), sentencesOf(passage{cell, p.line, rest})...)
	}
	start := 0
	for _, at := range end.FindAllStringIndex(text, -1) {
		if next, _ := utf8.DecodeRuneInString(text[at[1]:]); unicode.IsUpper(next) || strings.ContainsRune("`\"'([", next) {
			sentences = append(sentences, strings.TrimSpace(text[start:at[1]]))
			start = at[1]
		}
	}
	return append(sentences, text[start:])
}
