package sample

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// answering returns a function that answers with one word.
func answering(word string) func(modelserver.Ask, int) string {
	return func(modelserver.Ask, int) string { return word }
}

// gave lists the answer of each sample and the model that gave it.
func gave(samples []sdk.Sample) (all []string) {
	for i, label := range labels(samples) {
		all = append(all, label+" by "+samples[i].Model)
	}
	return all
}

// If the first service does not answer, the second one does, in its own form and with its own key. A run from the
// cache gives the same.
func TestNextService(t *testing.T) {
	always := modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 500, Share: 1}}}
	for name, o := range map[string]modelserver.Options{
		"denied": modelserver.Named("wants-another-key"), "no quota": modelserver.Named("has-no-quota"), "no money": modelserver.Named("wants-money"),
		"no model": modelserver.Named("knows-no-model"), "busy": {Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 429, Share: 1}}}, "failing": always,
		"broken off": {Faults: []modelserver.Fault{{Kind: modelserver.Drop, Share: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			second := modelserver.Serve(t, modelserver.Options{Answer: answering("two"), Key: "second-key"})
			f := openedOpenAI(t, 2, o, "")
			arguments := fmt.Sprintf(`, "headers": {"X-Team": "secret-team"}, "backends": ["next"], "backend_urls": {"next": %q}, "backend_keys": {"next": "second-key"}, "backend_models": {"next": "other"}, "backend_apis": {"next": "anthropic"}`, second.URL)
			f.reopen(t, 2, arguments)
			want := []string{"two by other", "two by other"}
			for i := range 5 {
				samples, err := f.one(t, texts(fmt.Sprint("q", i)))
				if diff := cmp.Diff(want, gave(samples)); err != nil || diff != "" {
					t.Fatalf("item %d: %v (-want +got)\n%s", i, err, diff)
				}
			}
			asked := 5
			if strings.HasPrefix(name, "no ") || name == "denied" {
				asked = 3 // then the first service is left out
			}
			if calls := f.server.Calls(); calls != asked {
				t.Errorf("the first service was asked %d times, want %d", calls, asked)
			}
			for _, a := range second.Asks() {
				if a.Header.Get("Authorization") != "" || a.Header.Get("X-Team") != "" || strings.Contains(fmt.Sprint(a.Header), key) || a.Model != "other" || a.Path != "/v1/messages" {
					t.Errorf("the second service got %s for %s with %v", a.Path, a.Model, a.Header)
				}
			}
			if !strings.Contains(f.log.String(), "the next one is asked") || strings.Contains(f.log.String(), "second-key") {
				t.Errorf("log %s", f.log)
			}
			calls := second.Calls()
			f.reopen(t, 2, arguments)
			samples, err := f.one(t, texts("q3"))
			if diff := cmp.Diff(want, gave(samples)); err != nil || diff != "" || second.Calls() != calls {
				t.Errorf("from the cache, after %d more calls: %v (-want +got)\n%s", second.Calls()-calls, err, diff)
			}
			f.reopen(t, 2, "") // alone, the first service gives its own answers
			if samples, err := f.one(t, texts("q3")); err == nil {
				t.Errorf("without the second service: %v", gave(samples))
			}
		})
	}
}

// An answer of a model counts as that model's, whichever service gave it.
func TestServicesOfOneModel(t *testing.T) {
	f := openedOpenAI(t, 2, modelserver.Options{Answer: answering("one")}, "")
	if _, err := f.one(t, texts("q")); err != nil {
		t.Fatal(err)
	}
	second := modelserver.Serve(t, modelserver.Options{Answer: answering("two")})
	arguments := fmt.Sprintf(`, "backends": ["next"], "backend_urls": {"next": %q}, "shares": {"next": 1}`, second.URL)
	f.reopen(t, 2, arguments)
	for text, want := range map[string][]string{"q": {"one by tiny", "one by tiny"}, "r": {"two by tiny", "two by tiny"}} {
		samples, err := f.one(t, texts(text))
		if diff := cmp.Diff(want, gave(samples)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", text, err, diff)
		}
	}
	f.reopen(t, 2, "")
	if samples, err := f.one(t, texts("r")); err != nil || labels(samples)[0] != "two" || samples[0].Model != "" {
		t.Errorf("alone: %+v, %v", samples, err)
	}
	if f.server.Calls() != 1 || second.Calls() != 1 {
		t.Errorf("%d and %d calls", f.server.Calls(), second.Calls())
	}
}

// Shares divide the answers among models, always in the same way. Limits distinguish services with the same address.
func TestShares(t *testing.T) {
	byModel := func(a modelserver.Ask, _ int) string { return a.Model }
	f := openedOpenAI(t, 4, modelserver.Options{Answer: byModel}, "")
	const arguments = `, "backends": ["next"], "backend_models": {"next": "other"}, "shares": {"main": 1, "next": 1}`
	var first [][]string
	for run := range 2 {
		f.reopen(t, 4, arguments)
		for i := range 30 {
			samples, err := f.one(t, texts(fmt.Sprint("q", i)))
			must.Do(t, err)
			got := gave(samples)
			if run == 0 {
				first = append(first, got)
			} else if diff := cmp.Diff(first[i], got); diff != "" {
				t.Errorf("item %d is answered by others (-first +then)\n%s", i, diff)
			}
			for _, one := range got {
				if one != "tiny by tiny" && one != "other by other" {
					t.Errorf("item %d: %s", i, one)
				}
			}
		}
	}
	if all := strings.Count(fmt.Sprint(first), "tiny by tiny"); all < 40 || all > 80 { // 60, with a standard deviation of 5.5
		t.Errorf("the first model gave %d of 120 answers", all)
	}
	endpoints := map[string]int{}
	for _, call := range f.host.Calls() {
		endpoints[call.Endpoint]++
		if !call.Alternative {
			t.Errorf("a call says nothing of the other service: %+v", call)
		}
	}
	if len(endpoints) != 2 || endpoints[f.server.URL] == 0 || endpoints[f.server.URL+" (next)"] == 0 {
		t.Errorf("limited by %v", endpoints)
	}
}
