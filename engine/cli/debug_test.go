package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestDebugging(t *testing.T) {
	var said []string
	print := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	never := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
	keys, press := io.Pipe()
	d := &debugging{print: print, attached: never, keys: keys}
	for range 2 { // it is started again, and asks again
		go fmt.Fprintln(press)
		if err := d.wait(t.Context(), "sample.mine", 4711); err != nil {
			t.Error(err)
		}
	}
	attached := &debugging{print: print, attached: func(context.Context, int) error { return nil }}
	if err := attached.wait(t.Context(), "sample.mine", 4712); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&debugging{print: print, attached: never}).wait(ctx, "sample.mine", 4713); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	const start = "sample.mine is process 4711, without confinement and time limits; attach a debugger (dlv attach 4711, gdb -p 4711), or press Enter"
	if len(said) != 5 || !strings.HasPrefix(said[0], start) || said[1] != said[0] || strings.Contains(said[2], "Enter") || said[3] != "a debugger is attached to sample.mine" {
		t.Errorf("it said %q", said)
	}
}
