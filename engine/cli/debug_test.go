package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

func TestDebugging(t *testing.T) {
	var said []string
	print := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	never := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
	keys, press := io.Pipe()
	d := &debugging{print: print, attached: never, keys: keys}
	for range 2 { // the stage starts again, and asks again
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
	const asks = "sample.mine is process %d, without confinement and time limits; attach a debugger (dlv attach %[1]d, gdb -p %[1]d)"
	enter := fmt.Sprintf(asks, 4711) + ", or press Enter to go on without"
	if want := []string{enter, enter, fmt.Sprintf(asks, 4712), "a debugger is attached to sample.mine", fmt.Sprintf(asks, 4713)}; !slices.Equal(want, said) {
		t.Errorf("it said %q, want %q", said, want)
	}
}
