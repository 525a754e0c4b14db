package workspace

import (
	"os"
	"testing"

	"github.com/racflow/racflow/sdk/wire"
)

// A program may have a verb of its own that is called plugin, also where a stage has started it.
func TestServeTakesNoVerb(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"program", "plugin", "sample.mine"}
	t.Setenv(wire.CookieKey, wire.CookieValue)
	if b := Serve(nil); b.stages != nil { // in a process that the engine has started for a stage it would not return
		t.Errorf("got %+v", b)
	}
}
