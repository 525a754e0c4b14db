package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// BenchmarkServe compares 64 connections that send single requests with a run over the same texts,
// in turns: the nearest neighbours of example utterances vote. x-run is the rate of the requests
// divided by the run's rate, the median of all turns. p99/p50 is a ratio of the requests' times;
// alone-ms is the median time of a request without others. On a busy machine only the ratios are
// meaningful.
func BenchmarkServe(b *testing.B) {
	file, texts := neighbours(b)
	o := workspace.Options{Builtin: builtin, State: b.TempDir()}
	set := must.Get(live.Open(context.Background(), []string{file}, live.Options{Engine: o}))(b)
	defer set.Close()
	must.Do(b, set.Start(b.Context()))
	beside := must.Get(workspace.Open(b.Context(), file, o))(b)
	defer beside.Close()
	s := must.Get(New(Of(set), Options{}))(b)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	c := &client{url: "http://" + l.Addr().String() + "/v1/pipelines/intent/answer", http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}

	run := func() time.Duration {
		begun := time.Now()
		n := 0
		for r, err := range beside.Run(b.Context(), func(yield func(workspace.Item) bool) {
			for _, text := range texts {
				if !yield(workspace.Item{Text: text}) {
					return
				}
			}
		}) {
			if err != nil || r.Error != nil {
				b.Fatal(err, r.Error)
			}
			n++
		}
		if n != len(texts) {
			b.Fatalf("%d of %d were answered", n, len(texts))
		}
		return time.Since(begun)
	}
	c.send(b, texts, 64) // connections, caches of processors, and stages of the run below
	run()
	var ratios, spreads, alone []float64
	for b.Loop() {
		whole := run()
		begun := time.Now()
		took := c.send(b, texts, 64)
		ratios = append(ratios, whole.Seconds()/time.Since(begun).Seconds())
		spreads = append(spreads, took[len(took)*99/100]/took[len(took)/2])
		single := c.send(b, texts[:100], 1)
		alone = append(alone, single[len(single)/2])
	}
	b.ReportMetric(median(ratios), "x-run")
	b.ReportMetric(median(spreads), "p99/p50")
	b.ReportMetric(1000*median(alone), "alone-ms")
	c.http.CloseIdleConnections()
	end()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// neighbours writes a pipeline of the example utterances, and returns texts for it. It uses an
// embedding model if one is installed.
func neighbours(b *testing.B) (file string, texts []string) {
	examples := must.Get(filepath.Abs("../../../../examples/intent"))(b)
	embedder := "minilm"
	if dir, err := sdk.ModelDir(embedder); err != nil {
		embedder = "hashing"
	} else if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err != nil {
		embedder = "hashing"
	}
	b.Logf("embedded with %s", embedder)
	file = filepath.Join(b.TempDir(), "p.hcl")
	text := strings.NewReplacer(`"rows.tsv"`, fmt.Sprintf("%q", filepath.Join(examples, "train.tsv")), "hashing", embedder, "top_k = 3", "top_k = 60").Replace(intent)
	must.Do(b, os.WriteFile(file, []byte(text), 0o600))
	rows := must.Get(os.ReadFile(filepath.Join(examples, "test.tsv")))(b)
	for turn := range 4 {
		for i, line := range strings.Split(strings.TrimSpace(string(rows)), "\n") {
			if i > 0 {
				texts = append(texts, fmt.Sprintf("%s %d", strings.Split(line, "\t")[1], turn))
			}
		}
	}
	return file, texts
}

type client struct {
	url  string
	http *http.Client
}

// send asks for all texts with concurrent callers, and returns the seconds of each request, sorted.
func (c *client) send(b *testing.B, texts []string, callers int) []float64 {
	var next atomic.Int64
	took := make([]float64, len(texts))
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(texts); i = int(next.Add(1)) - 1 {
				begun := time.Now()
				response, err := c.http.Post(c.url, "application/json", strings.NewReader(fmt.Sprintf(`{"text": %q}`, texts[i])))
				if err != nil {
					b.Error(err)
					return
				}
				text, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), `"answer":`) {
					b.Errorf("%s %s %v", response.Status, text, err)
				}
				took[i] = time.Since(begun).Seconds()
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
