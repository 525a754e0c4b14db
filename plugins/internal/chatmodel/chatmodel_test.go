package chatmodel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/api/apitest"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

func model(t *testing.T, c chatmodel.Config, host sdk.Host) *chatmodel.Model {
	t.Helper()
	if c.BaseURL == "" {
		c.BaseURL = "http://127.0.0.1:1/v1"
	}
	if c.Model == "" {
		c.Model = "tiny"
	}
	if c.MaxTokensField == "" {
		c.MaxTokensField = "auto"
	}
	c.Timeout = 5 * time.Second
	m := chatmodel.New(c, sdk.Setup{Host: host})
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestThinks(t *testing.T) {
	for name, want := range map[string]bool{"o1-mini": true, "openai/gpt-5-mini": true, "gpt-6-astra": true, "gpt-4o": false, "qwen3-o1": false, "o2": false} {
		m := model(t, chatmodel.Config{Model: name}, nil)
		if m.Thinks() != want {
			t.Errorf("%s thinks: %t", name, !want)
		}
		limits := []int{m.Limit(0, 32), m.Limit(7, 32), m.Limit(-1, 32)}
		usual := 32
		if want {
			usual = 0
		}
		if diff := cmp.Diff([]int{usual, 7, 0}, limits); diff != "" {
			t.Errorf("%s: limits (-want +got):\n%s", name, diff)
		}
	}
}

func TestFields(t *testing.T) {
	chat := []sdk.Message{{Role: sdk.MessageSystem, Text: "s", Shared: true}, {Role: sdk.MessageUser, Text: ""}, {Role: sdk.MessageUser, Text: "q"}}
	plain := `"messages":[{"role":"system","content":"s"},{"role":"user","content":""},{"role":"user","content":"q"}]`
	marked := `{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]}`
	var many []sdk.Message
	for i := range 6 {
		many = append(many, sdk.Message{Role: sdk.MessageUser, Text: fmt.Sprint(i), Shared: true})
	}
	tests := []struct {
		name     string
		config   chatmodel.Config
		messages []sdk.Message
		most     int
		want     string
	}{
		{"a chat", chatmodel.Config{}, chat, 7, `{"max_tokens":7,` + plain + `,"temperature":0}`},
		{"no limit, a key", chatmodel.Config{PromptCacheKey: "k"}, chat, 0, `{` + plain + `,"prompt_cache_key":"k","temperature":0}`},
		{"a model that thinks", chatmodel.Config{Model: "o3"}, chat, 7, `{"max_completion_tokens":7,` + plain + `}`},
		{"a completion", chatmodel.Config{Model: "o3"}, nil, 7, `{"max_tokens":7}`},
		{"another field", chatmodel.Config{MaxTokensField: "max_completion_tokens"}, nil, 7, `{"max_completion_tokens":7,"temperature":0}`},
		{"marks", chatmodel.Config{CacheControl: true}, chat[:1], 0, `{"messages":[` + marked + `],"temperature":0}`},
	}
	for _, test := range tests {
		got, err := json.Marshal(model(t, test.config, nil).Request(test.messages, 0, test.most, 1).Fields)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s\nwant %s (error %v)", test.name, got, test.want, err)
		}
	}
	got, err := json.Marshal(model(t, chatmodel.Config{CacheControl: true}, nil).Request(many, 0, 0, 1).Fields)
	if text := string(got); err != nil || strings.Count(text, "ephemeral") != 4 || strings.Index(text, "ephemeral") < strings.Index(text, `"2"`) {
		t.Errorf("the last four are not marked: %s", got)
	}
}

func TestAsk(t *testing.T) {
	question := chatmodel.Question{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: "q"}}, MaxTokens: 9}
	tests := []struct {
		name  string
		fault modelserver.Kind
		text  string
		code  sdk.Code
		want  string // of the answer, or of the error
	}{
		{name: "an answer", text: " yes \n", want: "yes"},
		{name: "behind thoughts", text: "<think>no</think>\nyes", want: "yes"},
		{name: "nothing but thoughts", text: "<think>no", code: sdk.CodeInvalid, want: "wrote nothing"},
		{name: "nothing", text: " ", code: sdk.CodeInvalid, want: "wrote nothing"},
		{name: "cut thoughts", text: "<think>no, or else yes, but then, on the other hand, it may be", code: sdk.CodeInvalid, want: "raise max_tokens"},
		{name: "a cut text is one", text: strings.Repeat("yes ", 12), want: strings.TrimSpace(strings.Repeat("yes ", 9))},
		{name: "refused", fault: modelserver.Refusal, text: "yes", code: sdk.CodeInvalid, want: "the model refused: I can't help"},
		{name: "filtered", fault: modelserver.Filter, text: "yes", code: sdk.CodeInvalid, want: "filter"},
		{name: "broken off", fault: modelserver.BrokeOff, text: "yes", code: sdk.CodeTransient, want: "broke off"},
		{name: "no choice", fault: modelserver.Fewer, text: "yes", code: sdk.CodeTransient, want: "no choices"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := modelserver.Options{Answer: func(modelserver.Ask, int) string { return test.text }}
			if test.fault != 0 {
				o.Faults = []modelserver.Fault{{Kind: test.fault, Share: 1}}
			}
			host := &apitest.Host{}
			m := model(t, chatmodel.Config{BaseURL: modelserver.Serve(t, o).URL}, host)
			var got string
			err := m.Ask(t.Context(), question, func(r chatmodel.Reply) (err error) {
				got, err = r.Written()
				return err
			})
			if test.code != 0 {
				if sdk.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
			} else if err != nil || got != test.want {
				t.Errorf("got %q, error %v", got, err)
			}
			if calls := host.Calls(); len(calls) != 1 || calls[0].Tokens < 9 || len(host.Results(t)) != 1 {
				t.Errorf("calls %+v", calls)
			}
		})
	}
}

// What a server says beside its choices may have any form.
func TestAskReadsChoicesAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"created": 1.5, "id": 7, "usage": {"prompt_tokens": 3.0}, "choices": [{"message": {"content": "yes"}}]}`)
	}))
	defer server.Close()
	var got string
	err := model(t, chatmodel.Config{BaseURL: server.URL}, nil).Ask(t.Context(), chatmodel.Question{}, func(r chatmodel.Reply) error {
		got = r.Text
		return nil
	})
	if err != nil || got != "yes" {
		t.Errorf("got %q, error %v", got, err)
	}
}

// TestKey changes every field of a question and of a model's config: all of them change
// the key, but for secrets and what does not change results.
func TestKey(t *testing.T) {
	type ask struct {
		Question chatmodel.Question
		Config   chatmodel.Config
	}
	base := func() ask {
		return ask{
			chatmodel.Question{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: "q", Shared: true}}, MaxTokens: 9},
			chatmodel.Config{BaseURL: "http://127.0.0.1:2/v1", Model: "tiny", MaxTokensField: "auto", Service: api.Service{Timeout: time.Second}},
		}
	}
	values := map[string]any{
		"Messages": []sdk.Message{{Role: sdk.MessageSystem, Text: "q"}}, "Temperature": .5, "MaxTokens": 8,
		"BaseURL": "http://127.0.0.1:3/v1", "Model": "other", "MaxTokensField": "max_completion_tokens", "PromptCacheKey": "k", "CacheControl": true,
		"APIKey": "k", "Headers": map[string]string{"A": "b"}, "Body": `{"a": 1}`, "Timeout": time.Minute,
	}
	key := func(a ask) sdk.Key { return chatmodel.New(a.Config, sdk.Setup{}).Key(a.Question) }
	plain, seen := key(base()), map[sdk.Key]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[ask]()) {
		for _, of := range reflect.VisibleFields(f.Type) {
			if of.Anonymous {
				continue
			}
			a, value := base(), values[of.Name]
			if value == nil {
				t.Fatalf("%s is new: give it another value here", of.Name)
			}
			reflect.ValueOf(&a).Elem().FieldByIndex(f.Index).FieldByIndex(of.Index).Set(reflect.ValueOf(value))
			changed := key(a)
			neutral := of.Tag.Get("affects_output") == "false" || strings.Contains(of.Tag.Get("config"), ",secret")
			if other := seen[changed]; neutral != (changed == plain) || !neutral && other != "" {
				t.Errorf("%s changes the key: %t; its key is also that of %q", of.Name, changed != plain, other)
			}
			seen[changed] = of.Name
		}
	}
	for _, m := range []sdk.Message{{Role: sdk.MessageUser, Text: "p"}, {Role: sdk.MessageSystem, Text: "q"}} {
		a := base()
		if a.Question.Messages[0] = m; key(a) == plain {
			t.Errorf("%+v has the key of another message", m)
		}
	}
	if a := base(); chatmodel.New(a.Config, sdk.Setup{}).Key(a.Question, "part") == plain {
		t.Error("what is made of the answer does not change the key")
	}
}

func TestTurn(t *testing.T) {
	m := model(t, chatmodel.Config{}, nil)
	a, b := sdk.KeyOf("a"), sdk.KeyOf("b")
	leave, err := m.Turn(t.Context(), a, b, a)
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Bool
	done := make(chan error)
	go func() {
		again, err := m.Turn(t.Context(), b)
		if err == nil && !left.Load() {
			err = errors.New("two have the same key")
		}
		if err == nil {
			again()
		}
		done <- err
	}()
	time.Sleep(5 * time.Millisecond)
	left.Store(true)
	leave()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
