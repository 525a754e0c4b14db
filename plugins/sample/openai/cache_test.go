package openai

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/sample/openai/openaitest"
	"github.com/racflow/racflow/sdk"
)

func TestKeptAnswersAreNotAskedForAgain(t *testing.T) {
	f := opened(t, 4, openaitest.Options{Answer: numbered(), Key: key}, `, "headers": {"X-Gateway": "hush-hush"}`)
	item := texts(strings.Repeat("the same beginning ", 20))
	first, err := f.one(t, item)
	if err != nil {
		t.Fatal(err)
	}
	if kept := values(f.host); len(kept) != 4 || strings.Contains(fmt.Sprint(kept), key) {
		t.Errorf("kept %v", kept)
	}

	// The same again, in another run: nothing is asked, all is equal.
	f.reopen(t, 4, "")
	again, err := f.one(t, item)
	if err != nil || f.server.Calls() != 1 {
		t.Fatalf("%d requests, error %v", f.server.Calls(), err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("another answer (-first +again):\n%s", diff)
	}

	// A missing one is asked for alone, and with it what n adds.
	forgotten := f.voter.mustKey(t, item, 1)
	f.host.Forget(forgotten)
	f.reopen(t, 6, "")
	more, err := f.one(t, item)
	if err != nil {
		t.Fatal(err)
	}
	if got := labels(more); !slices.Equal(got, []string{"a", "e", "c", "d", "f", "g"}) {
		t.Errorf("answers %v", got)
	}
	if got := asked(f.server); !slices.Equal(got, []int{4, 3}) {
		t.Errorf("n of the requests %v", got)
	}
	if more[1].Usage.CachedTokens == 0 {
		t.Errorf("usage %+v: the server had the prompt in its cache", more[1].Usage)
	}
}

// mustKey is the key of an item's sample.
func (v *voter) mustKey(t *testing.T, item sdk.Item, number int) sdk.Key {
	t.Helper()
	q, err := v.question(item.Prompts[0])
	if err != nil {
		t.Fatal(err)
	}
	return q.key(number)
}

func TestWhatChangesAnAnswerChangesItsKey(t *testing.T) {
	f := opened(t, 1, openaitest.Options{}, "")
	seen := map[sdk.Key]string{}
	prompt := sdk.Prompt{Text: "p", Labels: []string{"a", "b"}}
	add := func(arguments string, p sdk.Prompt, number int) {
		t.Helper()
		f.reopen(t, 1, arguments)
		k := f.voter.mustKey(t, sdk.Item{Prompts: []sdk.Prompt{p}}, number)
		name := fmt.Sprint(arguments, p, number)
		if other, ok := seen[k]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[k] = name
	}
	for _, arguments := range []string{
		"", `, "model": "other"`, `, "endpoint": "completions"`, `, "temperature": 0`, `, "top_p": 0.5`, `, "seed": 1`, `, "max_tokens": 5`,
		`, "stop": []`, `, "logprobs": true`, `, "structured": "json_schema"`, `, "structured": "choice"`, `, "body": "{\"user\": \"x\"}"`,
	} {
		add(arguments, prompt, 0)
	}
	add("", prompt, 1)
	add("", sdk.Prompt{Text: "q"}, 0)
	add("", sdk.Prompt{Messages: []sdk.Message{{Role: sdk.MessageSystem, Text: "p"}}}, 0)
	add("", sdk.Prompt{Text: "p", Labels: []string{"a", "b"}, Fields: []string{"why", "label"}}, 0)
	add("", sdk.Prompt{Text: "p", Labels: []string{"a", "b"}, Fields: []string{"label", "why"}}, 0)
	add("", sdk.Prompt{Text: "p", Labels: []string{"b", "a"}, Fields: []string{"label", "why"}}, 0)

	// What is only about reading or sending changes nothing.
	want := f.voter.mustKey(t, sdk.Item{Prompts: []sdk.Prompt{{Text: "p"}}}, 0)
	for _, arguments := range []string{
		`, "normalise": true, "nearest": 0.5`, `, "headers": {"X-Key": "hush-hush"}`, `, "timeout": "1s"`, `, "max_n": 1`, `, "prompt_cache_key": "k"`,
	} {
		f.reopen(t, 1, arguments)
		if f.voter.mustKey(t, sdk.Item{Prompts: []sdk.Prompt{{Text: "p", Labels: []string{"a"}}}}, 0) != want {
			t.Errorf("%s changes the key", arguments)
		}
	}
}

func TestWhatWasGotStaysKept(t *testing.T) {
	f := opened(t, 4, openaitest.Options{
		IgnoreN: true, Answer: numbered(), Faults: []openaitest.Fault{{Kind: openaitest.Status, Status: 500, Calls: []int{2}}},
	}, "")
	if _, err := f.one(t, texts("p")); sdk.CodeOf(err) != sdk.CodeTransient {
		t.Fatalf("error %v", err)
	}
	if kept := values(f.host); len(kept) != 2 {
		t.Errorf("kept %v, want the two that came", kept)
	}
	samples, err := f.one(t, texts("p"))
	if err != nil || !slices.Equal(labels(samples), []string{"a", "b", "c", "d"}) || f.server.Doubled(4) != 0 {
		t.Errorf("answers %v, error %v, given %v", labels(samples), err, f.server.Given())
	}
}

func TestItemsThatAskTheSameTakeTurns(t *testing.T) {
	f := opened(t, 3, openaitest.Options{Latency: 5 * time.Millisecond, Answer: numbered()}, "")
	var b sdk.Batch
	for range 8 {
		b.Items = append(b.Items, texts("p", "q"), texts("q", "p"))
	}
	all, err := f.Sample(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for i, samples := range all {
		if diff := cmp.Diff(all[i%2], samples); diff != "" {
			t.Errorf("item %d differs (-want +got):\n%s", i, diff)
		}
	}
	// Numbers 0 and 2 of one prompt and 1 of the other, in both orders: 3 of each.
	if got := f.server.Given(); got["user: p\n"] != 3 || got["user: q\n"] != 3 {
		t.Errorf("given %v", got)
	}
}

func TestAnswersCountThatCannotBeKept(t *testing.T) {
	f := opened(t, 2, openaitest.Options{}, "")
	f.host.Full = errors.New("the disk is full")
	for range 2 {
		if samples, err := f.one(t, texts("p")); err != nil || len(samples) != 2 {
			t.Errorf("samples %v, error %v", samples, err)
		}
	}
	if strings.Count(f.log.String(), "the disk is full") != 1 {
		t.Errorf("said:\n%s", f.log)
	}
}

func TestABrokenKeptValueIsAskedForAgain(t *testing.T) {
	f := opened(t, 1, openaitest.Options{}, "")
	if err := f.host.Keep(t.Context(), f.voter.mustKey(t, texts("p"), 0), []byte(`{"text": 7`)); err != nil {
		t.Fatal(err)
	}
	samples, err := f.one(t, texts("p"))
	if err != nil || !slices.Equal(labels(samples), []string{"answer"}) {
		t.Errorf("answers %v, error %v", samples, err)
	}
}

// TestFaults lets everything go wrong often and tries again, as the engine does.
func TestFaults(t *testing.T) {
	kinds := map[string]openaitest.Fault{
		"429 in milliseconds": {Kind: openaitest.Status, Status: 429, Wait: time.Millisecond, Form: openaitest.Milliseconds},
		"429 in seconds":      {Kind: openaitest.Status, Status: 429, Wait: time.Millisecond, Form: openaitest.Seconds},
		"429 as a date":       {Kind: openaitest.Status, Status: 429, Wait: time.Second, Form: openaitest.Date},
		"429":                 {Kind: openaitest.Status, Status: 429},
		"500":                 {Kind: openaitest.Status, Status: 500},
		"half a body":         {Kind: openaitest.HalfBody},
		"broken JSON":         {Kind: openaitest.Broken},
		"a lost connection":   {Kind: openaitest.Drop},
		"a hang":              {Kind: openaitest.Hang},
		"a broken answer":     {Kind: openaitest.BrokeOff},
		"fewer":               {Kind: openaitest.Fewer},
		"more":                {Kind: openaitest.More},
	}
	for name, fault := range kinds {
		t.Run(name, func(t *testing.T) {
			fault.Share = .4
			timeout, hangs := `, "timeout": "1m"`, fault.Kind == openaitest.Hang
			if hangs { // an answer may come too late as well, and be given twice
				timeout = `, "timeout": "50ms"`
			}
			f := opened(t, 2, openaitest.Options{Faults: []openaitest.Fault{fault}, Seed: 3}, timeout)
			failures := 0
			for i := range 12 {
				item := texts(fmt.Sprint("item ", i))
				samples, err := f.one(t, item)
				for ; err != nil && failures < 200; failures++ {
					if sdk.CodeOf(err) != sdk.CodeTransient {
						t.Fatalf("error %v is not transient", err)
					}
					samples, err = f.one(t, item)
				}
				if len(samples) != 2 {
					t.Errorf("item %d: samples %v, error %v", i, samples, err)
				}
			}
			if counted := fault.Kind != openaitest.Fewer && fault.Kind != openaitest.More; counted && failures == 0 {
				t.Error("nothing went wrong")
			} else if counted && !hangs && fault.Kind != openaitest.BrokeOff && f.server.Doubled(2) != 0 {
				t.Errorf("given %v", f.server.Given())
			}
			if len(keys(f.host)) != 24 {
				t.Errorf("%d answers are kept, want 24", len(keys(f.host)))
			}
		})
	}
}
