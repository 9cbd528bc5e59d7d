package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// call is a combination of labels by which the API server counts requests.
type call struct{ verb, resource, subresource string }

func (c call) String() string {
	if c.subresource == "" {
		return c.verb + " " + c.resource
	}
	return c.verb + " " + c.resource + "/" + c.subresource
}

// write returns whether a call changes objects.
func (c call) write() bool {
	return slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, c.verb)
}

// calls are the counts of requests from the API server.
type calls map[call]float64

// requests returns the counts so far, summed over response codes.
func (b *bench) requests(ctx context.Context) (calls, error) {
	counted, _, err := b.counted(ctx)
	return counted, err
}

// counted returns the counts of all requests so far, and of those that the API server refused because of a conflict. It omits Leases,
// because the API server writes some itself.
func (b *bench) counted(ctx context.Context) (counted, conflicts calls, err error) {
	families, err := scrape(ctx, b.http, b.server+"/metrics", "apiserver_request_total")
	if err != nil {
		return nil, nil, err
	}
	counted, conflicts = calls{}, calls{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := labelsOf(metric)
		if labels["resource"] == "leases" || labels["resource"] == "" {
			continue
		}
		kind := call{labels["verb"], labels["resource"], labels["subresource"]}
		counted[kind] += metric.GetCounter().GetValue()
		if labels["code"] == strconv.Itoa(http.StatusConflict) {
			conflicts[kind] += metric.GetCounter().GetValue()
		}
	}
	return counted, conflicts, nil
}

// sliDuration is the metric for Kubernetes' service level objectives on request latency: the duration of a request without webhooks.
// https://github.com/kubernetes/community/blob/main/sig-scalability/slos/api_call_latency.md
const sliDuration = "apiserver_request_sli_duration_seconds"

// latencies are the numbers of writes by the upper bound of their duration in seconds.
type latencies map[float64]float64

// latencies returns the latencies of all writes so far, except those of Leases.
func (b *bench) latencies(ctx context.Context) (latencies, error) {
	families, err := scrape(ctx, b.http, b.server+"/metrics", sliDuration, sliDuration+"_bucket", sliDuration+"_sum", sliDuration+"_count")
	if err != nil {
		return nil, err
	}
	all := latencies{}
	for _, metric := range families[sliDuration].GetMetric() {
		labels := labelsOf(metric)
		if kind := (call{labels["verb"], labels["resource"], labels["subresource"]}); !kind.write() || kind.resource == "leases" {
			continue
		}
		for _, bucket := range metric.GetHistogram().GetBucket() {
			all[bucket.GetUpperBound()] += float64(bucket.GetCumulativeCount())
		}
	}
	return all, nil
}

// since returns the latencies of the writes since an earlier measurement.
func (l latencies) since(before latencies) latencies {
	added := latencies{}
	for bound, n := range l {
		added[bound] = n - before[bound]
	}
	return added
}

// quantile returns the bound that a fraction q of the writes did not exceed.
func (l latencies) quantile(q float64) float64 {
	for _, bound := range slices.Sorted(maps.Keys(l)) {
		if l[bound] >= q*l[math.Inf(1)] {
			return bound
		}
	}
	return math.NaN()
}

// since returns the calls since an earlier measurement.
func (c calls) since(before calls) calls {
	added := calls{}
	for call, n := range c {
		if n > before[call] {
			added[call] = n - before[call]
		}
	}
	return added
}

// writes returns only the calls that change objects.
func (c calls) writes() calls {
	writes := maps.Clone(c)
	maps.DeleteFunc(writes, func(call call, _ float64) bool { return !call.write() })
	return writes
}

// reads returns only the calls that do not change objects.
func (c calls) reads() calls {
	reads := maps.Clone(c)
	maps.DeleteFunc(reads, func(call call, _ float64) bool { return call.write() })
	return reads
}

// lookups returns the reads of clients. It omits watches, and the API server's own reads of endpoints.
func (c calls) lookups() calls {
	lookups := c.reads()
	maps.DeleteFunc(lookups, func(call call, _ float64) bool {
		return call.verb != "GET" && call.verb != "LIST" || call.resource == "endpoints" || call.resource == "endpointslices"
	})
	return lookups
}

// of returns only calls for some resources.
func (c calls) of(resources ...string) calls {
	some := maps.Clone(c)
	maps.DeleteFunc(some, func(call call, _ float64) bool { return !slices.Contains(resources, call.resource) })
	return some
}

func (c calls) total() float64 {
	sum := 0.0
	for _, n := range c {
		sum += n
	}
	return sum
}

func (c calls) String() string {
	var parts []string
	for call, n := range c {
		parts = append(parts, fmt.Sprintf("%s %s", digits(n), call))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// quiet waits until there are no more writes, and returns the counts.
func (b *bench) quiet(ctx context.Context) (calls, error) {
	const still = 1500 * time.Millisecond
	deadline := time.Now().Add(patience)
	before, err := b.requests(ctx)
	for err == nil {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(still):
		}
		now, e := b.requests(ctx)
		if e != nil {
			return nil, e
		}
		writes := now.since(before).writes()
		if writes.total() == 0 {
			return now, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the writes do not stop: %s", writes)
		}
		before = now
	}
	return nil, err
}

func (c *controller) families(ctx context.Context, names ...string) (map[string]*dto.MetricFamily, error) {
	return scrape(ctx, http.DefaultClient, c.metrics+"/metrics", names...)
}

// measures returns metrics of the controller by name, summed over their labels.
func (c *controller) measures(ctx context.Context, names ...string) (map[string]float64, error) {
	families, err := c.families(ctx, names...)
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for name, family := range families {
		sums[name] = sum(family)
	}
	return sums, nil
}

func sum(family *dto.MetricFamily) float64 {
	sum := 0.0
	for _, metric := range family.GetMetric() {
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
	}
	return sum
}

// scrape reads some metrics. It skips the others without parsing them, because an API server has megabytes of them.
func scrape(ctx context.Context, transport *http.Client, url string, names ...string) (map[string]*dto.MetricFamily, error) {
	body, err := download(ctx, transport, url)
	if err != nil {
		return nil, err
	}
	var some bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimPrefix(lines.Text(), "# TYPE ")
		if end := strings.IndexAny(line, "{ "); end > 0 && slices.Contains(names, line[:end]) {
			some.WriteString(lines.Text() + "\n")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(&some)
}

func download(ctx context.Context, transport *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.Do(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
