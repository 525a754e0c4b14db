package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are those that the package's documentation lists.
type metrics struct {
	items, flagged, abstentions       *prometheus.CounterVec
	inProgress, queue                 *prometheus.GaugeVec
	seconds                           *prometheus.HistogramVec
	rows, errors, retries, restarts   *prometheus.CounterVec
	requests, tokens, cost, cacheHits *prometheus.CounterVec
	sending                           *prometheus.GaugeVec
	knowledge                         *prometheus.GaugeVec
	unmade, swaps                     *prometheus.CounterVec
	workers, batches                  *prometheus.GaugeVec
}

// buckets are the bounds of the histogram of calls in seconds: a local voter takes a
// millisecond for a batch, a language model half a minute.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newMetrics(r prometheus.Registerer, version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "racflow_" + name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "racflow_" + name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "racflow_stage_seconds", Help: "time of a stage's calls; a call takes a batch of rows", Buckets: buckets,
	}, []string{"pipeline", "stage"})
	r.MustRegister(seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge("build_info", "1", "version", "go_version").WithLabelValues(version, runtime.Version()).Set(1)
	return &metrics{
		seconds:     seconds,
		items:       counter("items_total", "items by what became of them: answered, undecided, failed", "pipeline", "outcome"),
		flagged:     counter("flagged_total", "answers that a person should look at", "pipeline"),
		abstentions: counter("abstentions_total", "items to which a voter gave no answer that counts", "pipeline", "stage"),
		inProgress:  gauge("items_in_progress", "items on their way through the stages", "pipeline"),
		queue:       gauge("queue_items", "items that wait for a batch, of pipelines that are served", "pipeline"),
		rows:        counter("stage_rows_total", "rows of these calls", "pipeline", "stage"),
		errors:      counter("stage_errors_total", "rows that failed; another try may have succeeded", "pipeline", "stage"),
		retries:     counter("retries_total", "calls that were made again after a failure that may pass", "pipeline", "stage"),
		restarts:    counter("stage_restarts_total", "processes that ended and were started again", "stage"),
		requests:    counter("requests_total", "requests to services: ok, busy, down, left, refused, denied, unsent", "pipeline", "stage", "status"),
		sending:     gauge("requests", "requests to services now: waiting, sent", "pipeline", "stage", "state"),
		tokens:      counter("tokens_total", "tokens that services reported: input (with cached ones), cached, output", "pipeline", "stage", "kind"),
		cost:        counter("cost_total", "money that requests took, by the prices in the file", "pipeline", "stage"),
		cacheHits:   counter("cache_hits_total", "replies taken from the response cache", "pipeline", "stage"),
		knowledge:   gauge("knowledge_seconds", "what bringing a knowledge up to date took the last time", "knowledge"),
		unmade:      counter("knowledge_failures_total", "knowledge that could not be brought up to date", "knowledge"),
		swaps:       counter("knowledge_swaps_total", "changes of what a pipeline that is served answers from", "pipeline"),
		workers:     gauge("workers", "workers of a run on many machines: joining, working, lacks, draining", "pipeline", "state"),
		batches:     gauge("batches", "batches of such a run: waiting, under_way, done", "pipeline", "state"),
	}
}
