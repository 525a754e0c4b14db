package chatmodel_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/api/apitest"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/profile"
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

// ask sends a question and returns what the first answer says.
func ask(t *testing.T, m *chatmodel.Model, r dialect.Request) (text string, err error) {
	t.Helper()
	r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: "q"}}
	err = m.Send(t.Context(), r, func(got dialect.Reply, _ dialect.Request) (err error) {
		text, err = got.Choices[0].Written()
		return err
	})
	return text, err
}

func TestSend(t *testing.T) {
	tests := []struct {
		name  string
		fault modelserver.Kind
		text  string
		code  sdk.Code
		want  string // of the answer, or of the error
		calls int    // 0: one
	}{
		{name: "an answer", text: " yes \n", want: "yes"},
		{name: "behind thoughts", text: "<think>no</think>\nyes", want: "yes"},
		{name: "nothing but thoughts", text: "<think>no", code: sdk.CodeInvalid, want: "wrote nothing"},
		{name: "nothing", text: " ", code: sdk.CodeInvalid, want: "wrote nothing"},
		{name: "cut thoughts", text: "<think>no, or else yes, but then, on the other hand, it may be", code: sdk.CodeInvalid, want: "wrote nothing", calls: 2},
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
			got, err := ask(t, m, m.Request(9, 32))
			if test.code != 0 {
				if sdk.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
			} else if err != nil || got != test.want {
				t.Errorf("got %q, error %v", got, err)
			}
			if calls := host.Calls(); len(calls) != max(1, test.calls) || calls[0].Tokens < 9 || len(host.Results(t)) != len(calls) {
				t.Errorf("calls %+v", calls)
			}
		})
	}
}

// What a server says beside its choices may have any form.
func TestSendReadsChoicesAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"created": 1.5, "id": 7, "usage": {"prompt_tokens": 3.0}, "choices": [{"message": {"content": "yes"}}]}`)
	}))
	defer server.Close()
	m := model(t, chatmodel.Config{BaseURL: server.URL}, nil)
	got, err := ask(t, m, m.Request(0, 9))
	if err != nil || got != "yes" {
		t.Errorf("got %q, error %v", got, err)
	}
}

// TestKey changes every field of a model's config: all of them change the key of an answer,
// but for secrets and what does not change results.
func TestKey(t *testing.T) {
	base := func() chatmodel.Config {
		return chatmodel.Config{BaseURL: "http://127.0.0.1:2/v1", Model: "tiny", MaxTokensField: "auto", Service: api.Service{Timeout: time.Second}}
	}
	values := map[string]any{
		"BaseURL": "http://127.0.0.1:3/v1", "Model": "other", "MaxTokensField": "max_completion_tokens", "PromptCacheKey": "k", "CacheControl": true,
		"APIKey": "k", "Headers": map[string]string{"A": "b"}, "Body": `{"a": 1}`, "Timeout": time.Minute, "APIVersion": "1", "API": "anthropic", "Batch": true,
		"Probe": true, "Profile": profile.Given{Effort: "low"},
	}
	key := func(c chatmodel.Config, parts ...string) sdk.Key {
		m := chatmodel.New(c, sdk.Setup{})
		r := m.Request(9, 32)
		r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: "q", Shared: true}}
		return m.Key(r, parts...)
	}
	plain, seen := key(base()), map[sdk.Key]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[chatmodel.Config]()) {
		if f.Anonymous || f.Tag.Get("config") == "" {
			continue
		}
		c, value := base(), values[f.Name]
		if value == nil {
			t.Fatalf("%s is new: give it another value here", f.Name)
		}
		reflect.ValueOf(&c).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(value))
		changed := key(c)
		neutral := f.Tag.Get("affects_output") == "false" || strings.Contains(f.Tag.Get("config"), ",secret")
		if other := seen[changed]; neutral != (changed == plain) || !neutral && other != "" {
			t.Errorf("%s changes the key: %t; its key is also that of %q", f.Name, changed != plain, other)
		}
		seen[changed] = f.Name
	}
	if key(base(), "part") == plain {
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
