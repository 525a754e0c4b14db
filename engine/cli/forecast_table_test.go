package cli

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestForecastsOfEndpoints compares the plan for each endpoint with the counts of its server in the
// run. At least 16 of 20 are within 25 %, in tokens and in cost, and none is above "at most".
func TestForecastsOfEndpoints(t *testing.T) {
	const near, enough = .25, 16
	var within atomic.Int32
	t.Run("endpoints", func(t *testing.T) { // ends with the last subtest
		for i, e := range endpoints {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				if tokens, cost := e.measure(t, uint64(i)); math.Abs(tokens-1) <= near && math.Abs(cost-1) <= near {
					within.Add(1)
				}
			})
		}
	})
	if n := within.Load(); n < enough {
		t.Errorf("%d of %d forecasts are within %.0f %%, want %d", n, len(endpoints), 100*near, enough)
	}
}

// measure returns two ratios of the forecast to the server's count: of tokens and of cost.
func (e endpoint) measure(t *testing.T, seed uint64) (tokens, cost float64) {
	w := e.world(t, seed)
	switch e.known {
	case afterProbe:
		w.probe()
	case afterRun:
		w.run("first.tsv")
	}
	said, before := w.forecast(), w.server.Used()
	w.run("items.tsv")
	used := w.server.Used()
	used.InputTokens -= before.InputTokens
	used.CachedTokens -= before.CachedTokens
	used.OutputTokens -= before.OutputTokens
	paid := w.price().Of(used)
	tokens, cost = float64(said.Likely.InputTokens+said.Likely.OutputTokens)/float64(used.InputTokens+used.OutputTokens), said.cost/paid
	t.Logf("tokens %.2f, cost %.2f of what was counted: %d in and %d (%d to %d) out expected, %d and %d counted; at most %s", tokens, cost,
		said.Likely.InputTokens, said.Likely.OutputTokens, said.Low, said.High, used.InputTokens, used.OutputTokens, said.bound())
	if said.Unknown == "" && (said.Most.InputTokens < used.InputTokens || said.Most.OutputTokens < used.OutputTokens || said.mostCost < paid) {
		t.Errorf("at most %+v at %.4f; it took %+v at %.4f", said.Most, said.mostCost, used, paid)
	}
	return tokens, cost
}

// world makes the pipeline, the data and the server of an endpoint.
func (e endpoint) world(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 36))
	language := e.language
	if language == "" {
		language = "english"
	}
	words := strings.Fields(sentences[language])
	text := func(r *rand.Rand, least, most int) string {
		some := make([]string, least+r.IntN(most-least+1))
		for i := range some {
			some[i] = words[r.IntN(len(words))]
		}
		return strings.Join(some, " ")
	}
	labels := make([]string, 12)
	for i := range labels {
		labels[i] = fmt.Sprintf("%s %d", text(r, 2, 2), i)
	}
	rows := func(n int, labelled bool) string {
		lines := []string{"text\tlabel"}
		for i := range n {
			label := ""
			if labelled {
				label = labels[i%len(labels)]
			}
			lines = append(lines, fmt.Sprintf("%s %d\t%s", text(r, 8, 40), i, label))
		}
		return strings.Join(lines, "\n") + "\n"
	}
	w := &world{t: t, about: e.name, server: modelserver.Serve(t, e.options(seed, labels, text))}
	w.dir = runtest.Folder(t, map[string]string{
		runtest.File: e.file(t, w.server.URL), "train.tsv": rows(120, true), "items.tsv": rows(40, false), "first.tsv": rows(24, false),
	})
	w.file = runtest.Load(t, enginetest.Catalog(builtin.Stages()), w.dir)
	kept, err := cache.Open(filepath.Join(w.dir, "cache"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.cache = kept
	return w
}

// options scripts the server.
func (e endpoint) options(seed uint64, labels []string, text func(r *rand.Rand, least, most int) string) modelserver.Options {
	o := e.server
	o.Count, o.Template, o.Frame = e.perToken, 8, 4
	if o.Count == nil {
		o.Count = bytesPerToken(4)
	}
	script := func(a modelserver.Ask, choice int) *rand.Rand { // the same for the same question
		h := fnv.New64a()
		_, _ = h.Write([]byte(a.Whole())) // a hash takes everything
		return rand.New(rand.NewPCG(seed+uint64(choice), h.Sum64()))
	}
	if e.thinks != nil {
		think := func(tokens float64) string {
			return strings.Repeat("hmm ", int(tokens)) // of four bytes each
		}
		draws, r := make([]float64, 1001), rand.New(rand.NewPCG(seed, 1))
		for i := range draws {
			draws[i] = e.thinks(r)
		}
		slices.Sort(draws)
		o.Thoughts = think(draws[len(draws)/2]/2) + "hmm"
		o.ThoughtsOf = func(a modelserver.Ask, choice int) string { return think(e.thinks(script(a, choice))) }
	}
	o.Answer = func(a modelserver.Ask, choice int) string {
		r := rand.New(rand.NewPCG(script(a, choice).Uint64(), 2))
		label, usable := labels[r.IntN(len(labels))], r.Float64() >= e.unusable
		if !usable {
			label = "nothing of that"
		}
		switch {
		case strings.Contains(a.Whole(), "<chunk>"):
			return text(r, 40, 70) + "."
		case e.prompt == "answer" && usable:
			return text(r, e.reasons[0], e.reasons[1]) + " [1]."
		case e.prompt == "answer":
			return text(r, e.reasons[0], e.reasons[1]) + "."
		case e.reasoning:
			return fmt.Sprintf(`{"reasoning": %q, "label": %q}`, text(r, e.reasons[0], e.reasons[1]), label)
		case e.prompt == "chat":
			return fmt.Sprintf(`{"label": %q}`, label)
		}
		return label
	}
	return o
}

// file returns the pipeline file.
func (e endpoint) file(t *testing.T, url string) string {
	cached, when, resamples := "", "", ""
	if e.cachedPrice > 0 {
		cached = fmt.Sprintf("cached = %g", e.cachedPrice)
	}
	price := fmt.Sprintf("price {\n input = 1\n output = 5\n %s\n }", cached)
	if e.when != "" {
		when = fmt.Sprintf("when = %q", e.when)
	}
	model := fmt.Sprintf("base_url = %q\n model = \"any\"\n %s", url, e.config)
	if e.resamples > 0 {
		resamples = fmt.Sprintf("resamples = %d", e.resamples)
	}
	if e.prompt == "answer" {
		docs, err := filepath.Abs("../../examples/docs/quern")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`
knowledge "docs" {
  source { path = %q }
  chunk {
    use = "markdown"
    config { size = 200 }
  }
  enrich "path" { use = "path" }
  enrich "contextualize" {
    use = "context"
    %s
    config {
      %s
    }
  }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "found" { top_k = 40 }
  rerank "best" { use = "local" }
  prompt "question" { use = "answer" }
  sample "llm" {
    use = "openai"
    %s
    %s
    config {
      %s
    }
  }
  elect "answer" { use = "first" }
}
`, filepath.ToSlash(docs), price, model, resamples, price, model)
	}
	prompt := "use = \"completion\"\n config {\n k = 8\n random = 4\n }"
	switch {
	case e.random > 0:
		prompt = fmt.Sprintf("use = \"completion\"\n config {\n k = 8\n random = %d\n redraw = \"run\"\n }", e.random)
	case e.prompt == "chat":
		prompt = fmt.Sprintf("use = \"chat\"\n config {\n shots = 6\n labels = \"all\"\n reasoning = %t\n }", e.reasoning)
	}
	return fmt.Sprintf(`
knowledge "k" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" {
    from = knowledge.k
    top_k = 20
  }
  sample "near" { use = "neighbours" }
  prompt "p" {
    %s
  }
  sample "llm" {
    use = "openai"
    n = %d
    accept = "answer in labels"
    %s
    %s
    %s
    config {
      %s
    }
  }
  elect "e" { use = "soft" }
}
`, prompt, e.n, when, resamples, price, model)
}
