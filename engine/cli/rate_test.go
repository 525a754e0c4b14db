//go:build linux

package cli

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestRate measures how much of the rate is reached that a service allows: 2,000
// calls of 600 ms, 64 at a time. It takes minutes and a machine that does little
// else, so it has to be asked for: RACFLOW_RATE=1 go test -run TestRate -v ./engine/cli
func TestRate(t *testing.T) {
	if os.Getenv("RACFLOW_RATE") == "" {
		t.Skip("RACFLOW_RATE is not set")
	}
	const atOnce, asked, latency = 64, 2000, 600 * time.Millisecond
	ideal := float64(asked) / atOnce * latency.Seconds()
	busy := modelserver.Fault{Kind: modelserver.Status, Status: http.StatusTooManyRequests, Share: 0.025, Wait: 2 * time.Second, Form: modelserver.Seconds}
	broken := modelserver.Fault{Kind: modelserver.Status, Status: http.StatusBadGateway, Share: 0.025}
	tests := map[string]struct {
		when   string
		part   int // one item in so many is sent to the model
		faults []modelserver.Fault
		least  float64 // share of the ideal rate
	}{
		"every item":   {"", 1, nil, 0.95},
		"one in five":  {`when = "item.text endsWith \"0\" or item.text endsWith \"5\""`, 5, nil, 0.95},
		"a slow retry": {"", 1, []modelserver.Fault{{Kind: modelserver.Status, Status: http.StatusServiceUnavailable, Calls: []int{0}, Wait: 5 * time.Second, Form: modelserver.Milliseconds}}, 0.75}, // the service is left alone for 5 s
		"5 % go wrong": {"", 1, []modelserver.Fault{busy, broken}, 0.2},                                                                                                                               // again and again
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPaid(t)
			p.server = modelserver.Serve(t, modelserver.Options{Latency: latency, Faults: test.faults, Seed: 7, Answer: func(modelserver.Ask, int) string { return "fruit" }})
			file := strings.NewReplacer("concurrency = 8", "concurrency = 64", "n     = 2", "n = 1\n"+test.when).Replace(paidPipeline)
			write(t, p.dir, "p.hcl", file)
			// What the model takes is found out by an earlier run: the rate is that of one that knows.
			write(t, p.dir, "items.tsv", "id\ttext\nq\tan apple or a car, number 0\n")
			good(t, p.command(t))
			write(t, p.dir, "items.tsv", "id\ttext\n"+numbered(asked*test.part, "q%[1]d\tan apple or a car, number %05[1]d\n"))
			code, stderr := p.run(t)
			took := regexp.MustCompile(`items in ([0-9.]+) s`).FindStringSubmatch(stderr)
			if code != 0 || took == nil || strings.Count(p.output(t), "\n") != asked*test.part {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			seconds, _ := strconv.ParseFloat(took[1], 64)
			t.Logf("%.1f s, %.1f %% of the ideal rate, %d calls, at most %d at once", seconds, 100*ideal/seconds, p.server.Calls(), p.server.MostAtOnce())
			if ideal/seconds < test.least {
				t.Errorf("it took %.1f s, ideally %.1f s\n%s", seconds, ideal, stderr)
			}
			if p.server.MostAtOnce() > atOnce || p.server.Doubled(1) > 0 {
				t.Errorf("%d calls at once, %d answers paid twice", p.server.MostAtOnce(), p.server.Doubled(1))
			}
		})
	}
}
