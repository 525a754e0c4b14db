package sample

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestKeptAnswersAreNotAskedForAgain(t *testing.T) {
	f := openedOpenAI(t, 4, modelserver.Options{Answer: numbered(), Key: key}, `, "headers": {"X-Gateway": "hush-hush"}`)
	item := texts(strings.Repeat("the same beginning ", 20))
	first, err := f.one(t, item)
	must.Do(t, err)
	if cached := values(f.host); len(cached) != 4 || strings.Contains(fmt.Sprint(cached), key) {
		t.Errorf("cached %v", cached)
	}

	// The same in another run: nothing is asked, and everything is equal.
	f.reopen(t, 4, "")
	again, err := f.one(t, item)
	if err != nil || f.server.Calls() != 1 {
		t.Fatalf("%d requests, error %v", f.server.Calls(), err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("another answer (-first +again):\n%s", diff)
	}

	// A missing sample is requested alone, and with it the samples that a larger n adds.
	forgotten := f.openAIVoter.mustKey(t, item, 1)
	f.host.Forget(forgotten)
	f.reopen(t, 6, "")
	more, err := f.one(t, item)
	must.Do(t, err)
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

// mustKey returns the key of an item's sample.
func (v *openAIVoter) mustKey(t *testing.T, item sdk.Item, number int) sdk.Key {
	t.Helper()
	q, err := v.question(item.Prompts[0], item.Rejected)
	must.Do(t, err)
	return q.key(v.Backend, number)
}

// changes holds new values for an argument of each type.
var changes = map[sdk.ArgumentType][]string{
	sdk.TypeString: {`"other"`}, sdk.TypeInt: {"1", "7"}, sdk.TypeFloat: {"0.5", "1"},
	sdk.TypeBool: {"true", "false"}, sdk.TypeDuration: {`"1s"`}, sdk.TypeStringList: {`["x"]`}, sdk.TypeStringMap: {`{"x": "hush-hush"}`, `{"x": "http://127.0.0.1:1/v1"}`, `{"x": "anthropic"}`},
	sdk.TypeNumberMap: {`{"main": 1}`},
	sdk.TypeBlock:     {`{"effort": "low"}`}, // of a profile, fields of a request
}

// changed are values of an argument that differ from its default.
func changed(t *testing.T, a sdk.Argument) (all []string) {
	t.Helper()
	candidates := changes[a.Type]
	if a.Example != "" && a.Type == sdk.TypeString {
		candidates = []string{strconv.Quote(a.Example)}
	}
	for _, choice := range a.OneOf {
		candidates = append(candidates, strconv.Quote(choice))
	}
	for _, value := range candidates {
		if a.Check([]byte(value)) == nil && value != string(a.Default) {
			all = append(all, value)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no value to change %s to: add one to changes", a.Name)
	}
	return all
}

// TestArgumentsAndKeys changes every argument of the stage: the cache key changes if and only if the output may
// change.
func TestArgumentsAndKeys(t *testing.T) {
	remade := map[string]string{ // arguments that change how a cached reply is read, each time anew
		"read":    "a label is found in the reply's text",
		"nearest": "the same",
		"reasons": "they are in the reply's text",
	}
	for _, name := range []string{"backends", "backend_urls", "backend_models", "backend_apis", "shares"} {
		remade[name] = "an answer has the key of the model that is to give it, and says which one gave it"
	}
	f := openedOpenAI(t, 1, modelserver.Options{}, "")
	keyOf := func(arguments string) sdk.Key {
		t.Helper()
		f.reopen(t, 1, arguments)
		return f.openAIVoter.mustKey(t, sdk.Item{Prompts: []sdk.Prompt{{Text: "p", Labels: []string{"a", "b"}}}}, 0)
	}
	usual, seen := keyOf(""), 0
	for _, a := range OpenAI().Arguments {
		var same, other []string
		for _, value := range changed(t, a) {
			arguments := fmt.Sprintf(`, %q: %s`, a.Name, value)
			if slices.Contains(a.Requires, "backends") {
				arguments += `, "backends": ["x"], "backend_models": {"x": "other"}`
				if a.Name == "backend_models" {
					arguments = `, "backends": ["x"], "backend_models": {"x": "other"}`
				}
			} else if a.Name == "backends" {
				arguments += `, "backend_models": {"x": "other"}`
			}
			if keyOf(arguments) == usual {
				same = append(same, value)
			} else {
				other = append(other, value)
			}
		}
		seen++
		switch out := a.OutputUnaffected || a.Secret || remade[a.Name] != ""; {
		case out && other != nil:
			t.Errorf("%s changes no reply, and %s of it change the key", a.Name, other)
		case !out && other == nil: // some values equal the default
			t.Errorf("%s changes replies, and %s of it leave the key as it is: make it part of the request, or tag it affects_output:\"false\"", a.Name, same)
		}
	}
	if seen < 15 {
		t.Errorf("%d arguments", seen)
	}
}

func TestWhatIsAskedChangesTheKey(t *testing.T) {
	f := openedOpenAI(t, 1, modelserver.Options{}, `, "structured": "off", "max_tokens": 9, "stop": [], "logprobs": true`) // every prompt is sent in the same form, however its reply is read
	seen := map[sdk.Key]string{}
	labels := []string{"a", "b"}
	for name, p := range map[string]sdk.Prompt{
		"a text":        {Text: "p", Labels: labels},
		"another":       {Text: "q", Labels: labels},
		"a chat":        {Messages: []sdk.Message{{Role: sdk.MessageSystem, Text: "p"}}},
		"read as JSON":  {Text: "p", Labels: labels, Fields: []string{"label"}},
		"with passages": {Text: "p", Passages: []string{"1"}},
	} {
		for number := range 2 {
			k := f.openAIVoter.mustKey(t, sdk.Item{Prompts: []sdk.Prompt{p}}, number)
			if other, ok := seen[k]; ok {
				t.Errorf("%s has the key of %s", name, other)
			}
			seen[k] = fmt.Sprint(name, " ", number)
		}
	}
	f.reopen(t, 1, `, "structured": "off", "max_tokens": 9, "stop": [], "logprobs": true, "read": "exact"`)
	if k := f.openAIVoter.mustKey(t, sdk.Item{Prompts: []sdk.Prompt{{Text: "p", Labels: labels}}}, 0); seen[k] != "" {
		t.Errorf("another reading has the key of %s, and so the probability of its label", seen[k])
	}
	f.reopen(t, 1, "")
	for name, p := range map[string]sdk.Prompt{
		"a schema":                   {Text: "p", Labels: labels, Fields: []string{"why", "label"}},
		"one of another order":       {Text: "p", Labels: labels, Fields: []string{"label", "why"}},
		"one with labels in another": {Text: "p", Labels: []string{"b", "a"}, Fields: []string{"label", "why"}},
	} {
		k := f.openAIVoter.mustKey(t, sdk.Item{Prompts: []sdk.Prompt{p}}, 0)
		if other, ok := seen[k]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[k] = name
	}
}

func TestWhatWasGotStaysKept(t *testing.T) {
	f := openedOpenAI(t, 4, modelserver.Options{
		IgnoreN: true, Answer: numbered(), Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 500, Calls: []int{2}}},
	}, "")
	if _, err := f.one(t, texts("p")); sdk.CodeOf(err) != sdk.CodeTransient {
		t.Fatalf("error %v", err)
	}
	if cached := values(f.host); len(cached) != 2 {
		t.Errorf("cached %v, want the two that came", cached)
	}
	samples, err := f.one(t, texts("p"))
	if err != nil || !slices.Equal(labels(samples), []string{"a", "b", "c", "d"}) || f.server.Doubled(4) != 0 {
		t.Errorf("answers %v, error %v, given %v", labels(samples), err, f.server.Given())
	}
}

func TestItemsThatAskTheSameTakeTurns(t *testing.T) {
	f := openedOpenAI(t, 3, modelserver.Options{Latency: 5 * time.Millisecond, Answer: numbered()}, "")
	var b sdk.Batch
	for range 8 {
		b.Items = append(b.Items, texts("p", "q"), texts("q", "p"))
	}
	all, err := f.Sample(t.Context(), b)
	must.Do(t, err)
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
	f := openedOpenAI(t, 2, modelserver.Options{}, "")
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
	f := openedOpenAI(t, 1, modelserver.Options{}, "")
	must.Do(t, f.host.CachePut(t.Context(), f.openAIVoter.mustKey(t, texts("p"), 0), []byte(`{"text": 7`)))
	samples, err := f.one(t, texts("p"))
	if err != nil || !slices.Equal(labels(samples), []string{"answer"}) {
		t.Errorf("answers %v, error %v", samples, err)
	}
}

// TestFaults makes everything fail often and tries again, like the engine.
func TestFaults(t *testing.T) {
	kinds := map[string]modelserver.Fault{
		"429 in milliseconds": {Kind: modelserver.Status, Status: 429, Wait: time.Millisecond, Form: modelserver.Milliseconds},
		"429 in seconds":      {Kind: modelserver.Status, Status: 429, Wait: time.Millisecond, Form: modelserver.Seconds},
		"429 as a date":       {Kind: modelserver.Status, Status: 429, Wait: time.Second, Form: modelserver.Date},
		"429":                 {Kind: modelserver.Status, Status: 429},
		"500":                 {Kind: modelserver.Status, Status: 500},
		"half a body":         {Kind: modelserver.HalfBody},
		"broken JSON":         {Kind: modelserver.Broken},
		"a lost connection":   {Kind: modelserver.Drop},
		"a hang":              {Kind: modelserver.Hang},
		"a broken answer":     {Kind: modelserver.BrokeOff},
		"fewer":               {Kind: modelserver.Fewer},
		"more":                {Kind: modelserver.More},
	}
	for name, fault := range kinds {
		t.Run(name, func(t *testing.T) {
			fault.Share = .4
			timeout, hangs := `, "timeout": "1m"`, fault.Kind == modelserver.Hang
			if hangs { // an answer may also come too late, and be given twice
				timeout = `, "timeout": "50ms"`
			}
			f := openedOpenAI(t, 2, modelserver.Options{Faults: []modelserver.Fault{fault}, Seed: 3}, timeout)
			failures := 0
			for i := range 12 {
				item := texts(fmt.Sprint("item ", i))
				samples, err := f.one(t, item)
				for ; err != nil && failures < 200; failures++ {
					if code := sdk.CodeOf(err); code != sdk.CodeTransient && !(hangs && code == sdk.CodeDeadline) { // a resumed run then asks again
						t.Fatalf("error %v is not one that passes", err)
					}
					samples, err = f.one(t, item)
				}
				if len(samples) != 2 {
					t.Errorf("item %d: samples %v, error %v", i, samples, err)
				}
			}
			if counted := fault.Kind != modelserver.Fewer && fault.Kind != modelserver.More; counted && failures == 0 {
				t.Error("nothing went wrong")
			} else if counted && !hangs && fault.Kind != modelserver.BrokeOff && f.server.Doubled(2) != 0 {
				t.Errorf("given %v", f.server.Given())
			}
			if len(openAIKeys(f.host)) != 24 {
				t.Errorf("%d answers are cached, want 24", len(openAIKeys(f.host)))
			}
		})
	}
}
