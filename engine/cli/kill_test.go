package cli

import (
	"os/exec"
	"testing"
	"time"
)

// patience is how long a test waits for what should take a moment: the machine
// may be busy with other things.
const patience = time.Minute

// killWhen starts a command and kills it once a condition holds. A machine that
// is busy may notice too late: then the command ends by itself, and what it did
// is undone for another try.
func killWhen(t *testing.T, command func() *exec.Cmd, holds func() bool, undo func()) {
	t.Helper()
	for range 20 {
		c := command()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		for ended := false; !ended && !holds(); {
			select {
			case err := <-done:
				done <- err
				ended = true
			case <-time.After(time.Millisecond):
			}
		}
		_ = c.Process.Kill() // unless it has ended
		if err := <-done; err != nil && c.ProcessState.ExitCode() == -1 {
			return
		} else if err != nil {
			t.Fatalf("%v fails before it is killed: %v", c.Args, err)
		}
		undo()
	}
	t.Fatal("the command always ended before it could be killed")
}
