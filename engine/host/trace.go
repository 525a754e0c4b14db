package host

import (
	"regexp"
	"strings"
)

// trace is what a Go program writes when it panics or a signal ends it: the first
// line, where that was, and the stack of the goroutine that did it. The rest may be
// longer than the last lines: every other goroutine, and the registers.
type trace struct {
	first, at string
	stack     []string // from the first line on, without the runtime's own frames
	runtime   bool     // the line before names a function of the runtime
	over      bool     // another goroutine's stack has begun
}

var (
	traceBegins = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: )`)
	goroutine   = regexp.MustCompile(`^goroutine \d+ `)
	ofRuntime   = regexp.MustCompile(`^(runtime[./]|internal/runtime/|panic\(|created by runtime\.)`)
)

// add takes the next line of standard error.
func (t *trace) add(line string) {
	if t.first == "" {
		if traceBegins.MatchString(line) {
			t.first, t.stack = line, []string{line}
		}
		return
	}
	place := strings.HasPrefix(line, "\t")
	switch {
	case t.over || len(t.stack) == tailLines:
		return
	case place && t.runtime || line == "runtime stack:":
		return
	case !place && ofRuntime.MatchString(line):
		t.runtime = true
		return
	case goroutine.MatchString(line) && t.at != "":
		t.over = true
		return
	case goroutine.MatchString(line) && len(t.stack) > 1 && goroutine.MatchString(t.stack[len(t.stack)-1]):
		t.stack = t.stack[:len(t.stack)-1] // there were only frames of the runtime
	}
	t.runtime = false
	if place && t.at == "" && strings.Contains(line, ".go:") {
		t.at, _, _ = strings.Cut(strings.TrimSpace(line), " +0x")
	}
	t.stack = append(t.stack, line)
}

// what is the first line and where it happened; empty: there is no trace.
func (t *trace) what() string {
	if t.at == "" {
		return t.first
	}
	return t.first + " at " + t.at
}
