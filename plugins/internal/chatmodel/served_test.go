package chatmodel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// Several models are served at one address under one name, one after the other. Answers of one model are not used for
// another, and each new model is probed.
func TestServed(t *testing.T) {
	host, serves := &apitest.Host{Probes: true}, ""
	address := "127.0.0.1:0"
	start := func() (probes int, key sdk.Key, profile string) {
		s, err := modelserver.Listen(modelserver.Options{Serves: serves, Probes: true}, address)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		address = strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/v1")
		m := model(t, chatmodel.Config{BaseURL: s.URL, Probe: true}, host)
		_, err = chatmodel.Later(t.Context(), m, "", func(context.Context) (string, error) { return ask(t, m, dialect.Request{}) })
		if err != nil {
			t.Fatal(err)
		}
		raw, err := m.Models()[0].Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Probes()), m.Key(dialect.Request{Prompt: "q"}), string(raw)
	}
	keys := map[string]sdk.Key{}
	for i, step := range []struct {
		serves string
		probed bool
	}{{"", true}, {"small.gguf", false}, {"", false}, {"large.gguf", true}, {"large.gguf", false}, {"small.gguf", true}} {
		serves = step.serves
		probes, key, profile := start()
		if (probes > 0) != step.probed {
			t.Errorf("step %d: %d probes", i, probes)
		}
		if step.serves == "" && i > 0 { // without a list, the model counts as the last one served
			step.serves = "small.gguf"
		}
		if known, ok := keys[step.serves]; ok && known != key {
			t.Errorf("step %d: another key for the same model", i)
		}
		if keys[step.serves] = key; !strings.Contains(profile, step.serves) {
			t.Errorf("step %d: profile %s", i, profile)
		}
	}
	if len(keys) != 3 || keys["small.gguf"] == keys["large.gguf"] || keys[""] == keys["small.gguf"] {
		t.Errorf("keys %v", keys)
	}
}
