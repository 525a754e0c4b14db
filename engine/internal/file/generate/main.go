// Command generate writes the table of prices from a wheel of LiteLLM, whose licence is
// MIT:
//
//	pip download --no-deps --dest DIR litellm
//	go run ./engine/internal/file/generate DIR/litellm-*.whl >engine/internal/file/pipeline/prices.tsv
//
// The table includes chat and embedding models of the services in hosts, if the services charge
// only for input and output tokens.
package main

import (
	"archive/zip"
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hosts maps LiteLLM's names of services to their hosts.
var hosts = map[string]string{
	"anthropic":   "api.anthropic.com",
	"cerebras":    "api.cerebras.ai",
	"cohere":      "api.cohere.com",
	"cohere_chat": "api.cohere.com",
	"deepseek":    "api.deepseek.com",
	"gemini":      "generativelanguage.googleapis.com",
	"groq":        "api.groq.com",
	"mistral":     "api.mistral.ai",
	"moonshot":    "api.moonshot.ai",
	"openai":      "api.openai.com",
	"voyage":      "api.voyageai.com",
	"xai":         "api.x.ai",
	"zai":         "api.z.ai",
}

// model is LiteLLM's entry of a model, with prices in dollars per token.
type model struct {
	Provider    string   `json:"litellm_provider"`
	Mode        string   `json:"mode"`
	Input       *float64 `json:"input_cost_per_token"`
	Cached      *float64 `json:"cache_read_input_token_cost"`
	Output      float64  `json:"output_cost_per_token"`
	Thought     float64  `json:"output_cost_per_reasoning_token"`
	BatchInput  *float64 `json:"input_cost_per_token_batches"`
	BatchOutput *float64 `json:"output_cost_per_token_batches"`
	Request     float64  `json:"input_cost_per_request"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "name one file: generate litellm-VERSION-....whl")
		os.Exit(1)
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(to io.Writer, wheel string) error {
	version := strings.Split(filepath.Base(wheel), "-")
	if len(version) < 3 || version[0] != "litellm" {
		return fmt.Errorf("%s is no wheel of litellm", wheel)
	}
	models, err := read(wheel)
	if err != nil {
		return fmt.Errorf("read %s: %w", wheel, err)
	}
	rows := map[string]string{}
	for name, m := range models {
		if host, ok := hosts[m.Provider]; ok && m.wanted(name) {
			rows[host+"\t"+strings.TrimPrefix(name, m.Provider+"/")] = m.row()
		}
	}
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "# Dollars for a million tokens: LiteLLM %s (MIT licence, Copyright (c) 2023 Berri AI), %s.\n", version[1], time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(w, "# Written by engine/internal/file/generate: do not edit.\n")
	fmt.Fprintln(w, "host\tmodel\tinput\tcached\toutput\tbatch")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(w, "%s\t%s\n", name, rows[name])
	}
	return w.Flush()
}

// read returns the models in the wheel.
func read(wheel string) (map[string]model, error) {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return nil, err
	}
	defer archive.Close() //nolint:errcheck // it was only read
	file, err := archive.Open("litellm/model_prices_and_context_window_backup.json")
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.NewDecoder(file).Decode(&raw); err != nil {
		return nil, err
	}
	delete(raw, "sample_spec")
	models := map[string]model{}
	for name, text := range raw {
		var m model
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		models[name] = m
	}
	return models, nil
}

// wanted reports whether the table can express a model's price.
func (m model) wanted(name string) bool {
	if m.Input == nil || m.Request > 0 || *m.Input == 0 && m.Output == 0 || strings.ContainsAny(name, "\t\n ") {
		return false
	}
	for _, other := range []string{"ft:", "-audio", "-search", "realtime", "-image", "computer-use"} { // not priced by tokens alone
		if strings.Contains(name, other) {
			return false
		}
	}
	return m.Mode == "chat" || m.Mode == "embedding"
}

// row returns the line of a model, without its name.
func (m model) row() string {
	batch := ""
	if m.BatchInput != nil && *m.Input > 0 {
		factor := *m.BatchInput / *m.Input
		if m.BatchOutput != nil && m.Output > 0 {
			factor = max(factor, *m.BatchOutput/m.Output)
		}
		if factor < 1 {
			batch = decimal(factor)
		}
	}
	cached := ""
	if m.Cached != nil {
		cached = decimal(*m.Cached * 1e6)
	}
	return strings.Join([]string{decimal(*m.Input * 1e6), cached, decimal(max(m.Output, m.Thought) * 1e6), batch}, "\t")
}

// decimal formats a number without the errors of binary fractions.
func decimal(x float64) string {
	return cmp.Or(strconv.FormatFloat(math.Round(x*1e6)/1e6, 'f', -1, 64), "0")
}
