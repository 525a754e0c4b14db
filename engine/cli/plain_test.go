//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// pseudoterminal opens a terminal: text written to one end is read at the other.
func pseudoterminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no pseudoterminals here: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return screen, terminal
}

// TestPlainText checks what a terminal gets: coloured diagnostics, and progress that overwrites a
// line, unless the environment asks for plain text.
func TestPlainText(t *testing.T) {
	q := newQuick(t, 1000)
	write(t, q.dir, "bad.hcl", "knowledge {\n")
	for _, test := range []struct {
		env   []string
		plain bool
	}{
		{[]string{"TERM=xterm", "NO_COLOR="}, false},
		{[]string{"TERM=xterm", "NO_COLOR=1"}, true},
		{[]string{"TERM=xterm", "NO_COLOR=false"}, true}, // any value
		{[]string{"TERM=dumb", "NO_COLOR="}, true},
	} {
		bad := q.shown(t, test.env, "validate", "bad.hcl")
		if !strings.Contains(bad, "bad.hcl line 1") || strings.Contains(bad, "\x1b") == test.plain {
			t.Errorf("with %v: %q", test.env, bad)
		}
		// Progress may or may not show, depending on the machine.
		run := q.shown(t, test.env, "run", "--output", "out.jsonl", "p.hcl")
		if !strings.Contains(run, "1000 items in") || test.plain && strings.Contains(run, "\x1b") {
			t.Errorf("with %v: %q", test.env, run)
		}
	}
}

// shown returns what a command writes to a terminal.
func (q quick) shown(t *testing.T, env []string, args ...string) string {
	t.Helper()
	screen, terminal := pseudoterminal(t)
	c := racflow(t, q.dir, args...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = terminal, terminal
	start(t, c)
	_ = terminal.Close() // the process has it open
	text, err := io.ReadAll(screen)
	if err != nil && !errors.Is(err, unix.EIO) { // the error of a terminal with no writers
		t.Fatal(err)
	}
	_ = c.Wait() // a bad file fails
	return string(text)
}

// TestQuestionOfTrust: a person answers the question about what a file wants. No ends the command,
// and the grant of a yes is stored.
func TestQuestionOfTrust(t *testing.T) {
	s := newSecretive(t)
	for _, test := range []struct {
		answer string
		asked  bool
		code   int
	}{{"n\n", true, exitFailed}, {"\n", true, exitFailed}, {"yes\n", true, 0}, {"", false, 0}} {
		screen, terminal := pseudoterminal(t)
		c := racflow(t, s.dir, "knowledge", "list", "p.hcl")
		c.Env, c.Stdin, c.Stderr = s.env, terminal, terminal
		if _, err := screen.WriteString(test.answer); err != nil {
			t.Fatal(err)
		}
		shown := make(chan string)
		go func() {
			text, _ := io.ReadAll(screen) // ends with an error once the terminal is closed
			shown <- string(text)
		}()
		err := c.Run()
		_ = terminal.Close()
		text := <-shown
		code := c.ProcessState.ExitCode()
		if code != test.code || strings.Contains(text, "[y/N]") != test.asked || err != nil && code < 0 {
			t.Errorf("answered %q, it ends with %d, %v: %s", test.answer, code, err, text)
		}
	}
}
