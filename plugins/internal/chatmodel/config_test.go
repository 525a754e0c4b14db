package chatmodel_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/api/apitest"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestAzure asks a deployment.
func TestAzure(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{})
	m := model(t, chatmodel.Config{BaseURL: strings.TrimSuffix(server.URL, "/v1"), Model: "my-gpt", APIVersion: "2024-10-21", Service: api.Service{APIKey: "secret-key"}}, nil)
	if _, err := ask(t, m, m.Request(0, 9)); err != nil {
		t.Fatal(err)
	}
	got := server.Asks()[0]
	if want := "/openai/deployments/my-gpt/chat/completions"; got.Path != want || got.Header.Get("Api-Key") != "secret-key" || slices.Contains(got.Header["Authorization"], "Bearer secret-key") {
		t.Errorf("asked %s with %v", got.Path, got.Header)
	}
}

// TestAnthropic asks in the form of Anthropic's API, and what the model turns out to refuse
// is left out there, too.
func TestAnthropic(t *testing.T) {
	server := serve(t, "refuses-temperature")
	host := &apitest.Host{}
	m := model(t, chatmodel.Config{API: "anthropic", BaseURL: server.URL, Service: api.Service{APIKey: "secret-key"}}, host)
	for calls := 2; calls < 4; calls++ {
		if text, err := ask(t, m, everything(m)); err != nil || text != `{"label": "a"}` || server.Calls() != calls {
			t.Errorf("%q after %d calls, error %v", text, server.Calls(), err)
		}
	}
	got := server.Asks()[1]
	if got.Path != "/v1/messages" || got.Header.Get("X-Api-Key") != "secret-key" || got.Header.Get("Authorization") != "" || strings.Contains(string(got.Body), "temperature") {
		t.Errorf("asked %s with %v: %s", got.Path, got.Header, got.Body)
	}
	if spent := host.Spent(t); spent.InputTokens == 0 || spent.OutputTokens == 0 {
		t.Errorf("spent %+v", spent)
	}
}

// The default address is that of the API's own service.
func TestAddress(t *testing.T) {
	const openAI, gateway = "https://api.openai.com/v1", "http://127.0.0.1:1/v1"
	for _, test := range []struct{ api, url, want string }{
		{"openai", openAI, openAI}, {"anthropic", openAI, "https://api.anthropic.com/v1"}, {"anthropic", gateway + "/", gateway}, {"openai", gateway, gateway},
	} {
		c := chatmodel.Config{API: test.api, BaseURL: test.url}
		if m := model(t, c, nil); c.Address() != test.want || m.Address() != test.want {
			t.Errorf("%+v: %s, %s", test, c.Address(), m.Address())
		}
	}
}

func TestCheck(t *testing.T) {
	const gateway = "http://127.0.0.1:1/v1"
	for _, test := range []struct {
		config   chatmodel.Config
		argument string // that is wrong; empty: none
	}{
		{chatmodel.Config{BaseURL: "https://api.openai.com/v1"}, ""},
		{chatmodel.Config{BaseURL: gateway, APIVersion: "2024-10-21"}, ""},
		{chatmodel.Config{BaseURL: gateway, API: "anthropic"}, ""},
		{chatmodel.Config{BaseURL: "https://api.openai.com/v1", API: "anthropic"}, ""},
		{chatmodel.Config{BaseURL: gateway, API: "anthropic", APIVersion: "2024-10-21"}, "api_version"},
		{chatmodel.Config{BaseURL: gateway, API: "anthropic", Completion: true}, "api"},
		{chatmodel.Config{BaseURL: gateway, API: "anthropic", Service: api.Service{Body: `{"system": "s"}`}}, "body"},
		{chatmodel.Config{BaseURL: gateway, Service: api.Service{Body: `{"stream": true}`}}, "body"},
		{chatmodel.Config{BaseURL: gateway, Service: api.Service{Body: `{"system": "s"}`}}, ""},
	} {
		err := test.config.Check()
		wrong := new(sdk.ArgumentError)
		if errors.As(err, &wrong) != (test.argument != "") || wrong.Argument != test.argument {
			t.Errorf("%+v: %v, want an error of %q", test.config, err, test.argument)
		}
	}
}
