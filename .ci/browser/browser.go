package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a whole test of a page may take: far longer than it does.
const patience = 3 * time.Minute

// Tab is a page in a browser of its own.
type Tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // what was asked for, beside the page itself
	problems []string // of the console, and exceptions
}

// Open opens a page, a file or an http URL, in a new browser, which ends with the test. The
// test is skipped where there is none.
func Open(t *testing.T, address string) *Tab {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil || os.Getenv("RACFLOW_TEST_AXE") == "" {
		t.Skip("this test needs Chromium and axe-core: .ci/browser/run gets both")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.WindowSize(1360, 900), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("lang", "en"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for its end, so that the folder can be removed
		cancel()
	})
	tab := &Tab{t: t, ctx: ctx}
	if !strings.Contains(address, ":") {
		if address, err = filepath.Abs(address); err != nil {
			t.Fatal(err)
		}
		address = "file://" + address
	}
	if err := chromedp.Listen(ctx, func(event any) { tab.note(event, address) }); err != nil {
		t.Fatal(err)
	}
	call(tab, network.Enable, network.EnableParams{})
	call(tab, log.Enable, cdp.Empty{})
	call(tab, runtime.Enable, cdp.Empty{})
	tab.Do(chromedp.Navigate(address))
	return tab
}

// note keeps what a page asks for and what goes wrong.
func (tab *Tab) note(event any, address string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	page, _, _ := strings.Cut(address, "#")
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Request.URL != page {
			tab.requests = append(tab.requests, e.Request.URL)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			tab.problems = append(tab.problems, e.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, arg := range e.Args {
				tab.problems = append(tab.problems, string(arg.Value)+arg.Description)
			}
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			text += " " + thrown.Description
		}
		tab.problems = append(tab.problems, text)
	}
}

// Do does what chromedp can do.
func (tab *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	if err := chromedp.Do(tab.ctx, steps...); err != nil {
		tab.t.Fatalf("%v\nproblems of the page: %q", err, tab.Problems())
	}
}

// call sends a command of the protocol.
func call[P, R any](tab *Tab, command cdp.Command[P, R], params P) {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, command, params); err != nil {
		tab.t.Fatal(err)
	}
}

// Eval returns what a JavaScript expression is, or what the promise becomes that it is.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	value, err := chromedp.Run(tab.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatalf("%s: %v\nproblems of the page: %q", expression, err, tab.Problems())
	}
	return value
}

// Wait waits until a JavaScript expression holds.
func (tab *Tab) Wait(condition string) {
	tab.t.Helper()
	Eval[bool](tab, `new Promise((done) => { const look = () => (`+condition+`) ? done(true) : setTimeout(look, 20); look(); })`)
}

// Keys presses keys: texts, or keys of chromedp/kb such as kb.Enter.
func (tab *Tab) Keys(keys ...string) {
	tab.t.Helper()
	for _, key := range keys {
		tab.Do(chromedp.KeyEvent(key))
	}
}

// Focus puts the focus on the first element of a CSS selector.
func (tab *Tab) Focus(selector string) {
	tab.t.Helper()
	tab.Do(chromedp.Focus(chromedp.CSS(selector)))
}

// Focused returns the name or text of the element that has the focus.
func (tab *Tab) Focused() string {
	tab.t.Helper()
	return Eval[string](tab, `document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent`)
}

// Theme has the system ask for a theme: "light" or "dark".
func (tab *Tab) Theme(theme string) {
	tab.t.Helper()
	call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
}

// Width gives the page a window that is so many pixels wide, and as high as a phone.
func (tab *Tab) Width(pixels int64) {
	tab.t.Helper()
	tab.Do(chromedp.EmulateViewport(pixels, 844))
}

// Requests returns the addresses that the page asked for, itself aside.
func (tab *Tab) Requests() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return append([]string(nil), tab.requests...)
}

// Problems returns the errors and warnings of the console, and exceptions.
func (tab *Tab) Problems() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return append([]string(nil), tab.problems...)
}
