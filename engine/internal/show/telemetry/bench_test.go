package telemetry_test

import (
	"fmt"
	"iter"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/workspace"

	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/engine/internal/source"
)

// BenchmarkCost measures what metrics and traces cost: rounds of the same items, alternately
// watched and not, through the same processes. cpu/% is how much more processor time watched rounds
// take, of this process and its stages, and wall/% how much more time; ±cpu and ±wall are the
// halves of their 95 % intervals, of paired rounds. Each iteration is two rounds:
//
//	go test -run '^$' -bench Cost -benchtime 60x ./engine/internal/show/telemetry
func BenchmarkCost(b *testing.B) {
	for _, embedder := range []string{"hashing", "minilm"} {
		b.Run(embedder, func(b *testing.B) {
			turns := &turns{}
			p, items := benched(b, embedder, turns)
			tel, err := telemetry.New(b.Context(), telemetry.Options{TraceFile: filepath.Join(b.TempDir(), "traces.jsonl"), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			observers := [2]outcome.Observer{outcome.ObserverOr(nil), tel}
			for _, turns.Observer = range observers { // warm
				answer(b, p, items)
			}
			var cpu, wall []float64
			for n := 0; b.Loop(); n++ {
				var cpus, walls [2]float64
				for i := range 2 {
					on := (i + n) % 2
					turns.Observer = observers[on]
					began, used := time.Now(), used(b)
					answer(b, p, items)
					walls[on], cpus[on] = time.Since(began).Seconds(), usedSince(b, used)
				}
				cpu, wall = append(cpu, math.Log(cpus[1]/cpus[0])), append(wall, math.Log(walls[1]/walls[0]))
			}
			if err := tel.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			for name, all := range map[string][]float64{"cpu": cpu, "wall": wall} {
				mean, half := meanOf(all)
				b.ReportMetric(100*math.Expm1(mean), name+"/%")
				b.ReportMetric(100*half, "±"+name)
			}
		})
	}
}

// turns is an observer that can be replaced between rounds.
type turns struct{ outcome.Observer }

// benched opens pipelines/intent.hcl without its language model, and reads its items.
func benched(b *testing.B, embedder string, o outcome.Observer) (*workspace.Pipeline, iter.Seq[workspace.Item]) {
	b.Helper()
	options := workspace.Options{Builtin: builtin, State: b.TempDir(), Vars: map[string]string{"embedder": embedder}, Observe: o}
	p, err := workspace.Open(b.Context(), "../../../../pipelines/intent.hcl", options)
	if err != nil {
		b.Skip(err) // the embedding model is not there
	}
	b.Cleanup(p.Close)
	rows, err := p.Rows()
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // it was only read
	var all []workspace.Item
	for {
		var row source.Row
		if row, err = rows.Next(); err != nil {
			break
		}
		all = append(all, workspace.Item{Text: row.Text})
	}
	const times = 4 // the items, so that a round takes a while
	return p, func(yield func(workspace.Item) bool) {
		for n := range times * len(all) {
			item := all[n%len(all)]
			item.ID = fmt.Sprint(n)
			if !yield(item) {
				return
			}
		}
	}
}

func answer(b *testing.B, p *workspace.Pipeline, items iter.Seq[workspace.Item]) {
	for _, err := range p.Run(b.Context(), items) {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// meanOf returns the mean of some differences, and half of its 95 % interval.
func meanOf(all []float64) (mean, half float64) {
	for _, x := range all {
		mean += x / float64(len(all))
	}
	for _, x := range all {
		half += (x - mean) * (x - mean)
	}
	return mean, 1.96 * math.Sqrt(half/float64(len(all)-1)/float64(len(all)))
}

// used returns the processor time in ticks of this process and its descendants.
func used(b *testing.B) float64 {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		b.Skip("processor time is read from /proc")
	}
	parent, took := map[int]int{}, map[int]float64{}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		before, after, _ := strings.Cut(string(text), " (")
		fields := strings.Fields(after[strings.LastIndex(after, ")")+1:])
		pid, _ := strconv.Atoi(before)
		parent[pid], _ = strconv.Atoi(fields[1])
		for _, ticks := range fields[11:13] {
			n, _ := strconv.ParseFloat(ticks, 64)
			took[pid] += n
		}
	}
	sum := 0.0
	for pid, ticks := range took {
		for up := pid; up > 1; up = parent[up] {
			if up == os.Getpid() {
				sum += ticks
				break
			}
		}
	}
	return sum
}

func usedSince(b *testing.B, before float64) float64 { return used(b) - before }
