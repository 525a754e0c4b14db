package serve

import (
	"context"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

type attachConfig struct {
	Collection string `config:"collection" doc:"One that another program makes."`
}

// A store that declares sdk.Attaches but has no Attach is detected when it opens, not in the middle
// of a run. Without the argument it is an ordinary store.
func TestAttachesNeedsAttach(t *testing.T) {
	open := func(context.Context, sdk.Setup, attachConfig) (sdk.Store, error) { return &shelf{}, nil }
	for config, want := range map[string]string{
		`{"collection": "docs"}`: `stage s says sdk.Attaches("collection"), and what it opens with that argument has no method Attach`,
		`{"collection": ""}`:     "",
		`{}`:                     "",
	} {
		client, server := connect(t, sdk.StoreStage("s", "A store.", open, sdk.Attaches("collection")))
		t.Cleanup(server.Close)
		reply, err := client.Configure(t.Context(), &stagepb.ConfigureRequest{Kind: stagepb.Kind_KIND_STORE, Name: "s", ConfigJson: []byte(config)})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range reply.GetErrors() {
			got += e.GetMessage()
		}
		if got != want {
			t.Errorf("%s gave %q, want %q", config, got, want)
		}
	}
}
