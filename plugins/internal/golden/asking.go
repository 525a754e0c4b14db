package golden

import (
	"fmt"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/api/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// Asking is Check for a stage that asks a language model: what it asks is compared, too.
func Asking(t *testing.T, stage sdk.Stage, want string) {
	t.Helper()
	server := modelserver.Serve(t, modelserver.Options{Answer: func(modelserver.Ask, int) string {
		return "<think>Well.</think> 1. a lost card\n2. Who blocks it, and when?\n3. A lost card"
	}})
	config := fmt.Sprintf(`{"base_url": %q, "model": "tiny"}`, server.URL)
	open, err := stage.Open(t.Context(), sdk.Setup{Block: "golden", Samples: 3, Host: &apitest.Host{}}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t, open)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, a := range server.Asks() {
		asked = append(asked, a.Whole())
	}
	slices.Sort(asked)
	Compare(t, stage, []any{asked, out}, want)
}
