package workspace

import (
	"os"
	"testing"

	"github.com/racflow/racflow/sdk/wire"
)

// A program may have its own command called plugin, even if a stage has started the program.
func TestServeTakesNoVerb(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"program", "plugin", "sample.mine"}
	t.Setenv(wire.CookieKey, wire.CookieValue)
	if b := Serve(nil); b.stages != nil { // in a stage process of the engine, Serve would not return
		t.Errorf("got %+v", b)
	}
}
