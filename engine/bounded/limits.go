package bounded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// The bounds. Work is counted in bytes, so that it does not depend on the machine; the time
// bounds what cannot be counted.
const (
	maxWork        = 16 << 20 // bytes of all values of a file
	MaxTime        = time.Minute
	MaxDiagnostics = 100
	MaxDetail      = 2000 // bytes of a diagnostic's detail
	Overhead       = 100  // bytes of a value in addition to its text
)

var errSlow = fmt.Errorf("it takes longer than %v", MaxTime)

// WithTimeout returns a context that ends after MaxTime.
func WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, MaxTime, errSlow)
}

// Stopped is what the methods of an Evaluator panic with.
type Stopped struct{ Diagnostic *hcl.Diagnostic }

// Stop recovers a Stopped and calls each with its diagnostic. It is to be deferred.
func Stop(each func(*hcl.Diagnostic)) {
	switch r := recover().(type) {
	case nil:
	case Stopped:
		each(r.Diagnostic)
	default:
		panic(r)
	}
}

// Located is something with a place in a file.
type Located interface{ Range() hcl.Range }

// Spend takes n bytes from the budget for work on something. It stops where not enough is
// left or the context has ended.
func (e *Evaluator) Spend(on Located, n int) {
	if e.ctx.Err() != nil {
		panic(Stopped{e.Interrupted()})
	}
	at := on.Range()
	switch {
	case n == math.MaxInt:
		panic(Stopped{&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Number out of range", Subject: &at,
			Detail: fmt.Sprintf("A number has at most %d binary digits before and after its point. Write a smaller one.", maxDigits),
		}})
	case n > e.left:
		panic(Stopped{&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Expressions too large", Subject: &at,
			Detail: fmt.Sprintf("The expressions of a file make at most %d MiB of texts and lists, and this one exceeds that. "+
				"Build less here, or keep the content in a file that a stage or source reads.", maxWork>>20),
		}})
	}
	e.left -= n
}

// TooMany is the diagnostic that takes the place of those above MaxDiagnostics.
func TooMany() *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Too many errors",
		Detail: fmt.Sprintf("Only the first %d are shown.", MaxDiagnostics),
	}
}

// Interrupted says why the context has ended, and what the work was at then.
func (e *Evaluator) Interrupted() *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Interrupted", Detail: "Loading was interrupted."}
	if errors.Is(context.Cause(e.ctx), errSlow) {
		d.Summary = "Loading takes too long"
		d.Detail = fmt.Sprintf("Loading has not ended within %v. This is what it was busy with.", MaxTime)
	}
	if on := e.at.Load(); on != nil {
		at := (*on).Range()
		d.Subject = &at
	}
	return d
}

// Busy records what the work is at, until done is called.
func (e *Evaluator) Busy(on Located) (done func()) {
	before := e.at.Swap(&on)
	return func() { e.at.Store(before) }
}

// place is a range as something Located.
type place hcl.Range

// Range implements Located.
func (p place) Range() hcl.Range { return hcl.Range(p) }

// Top is the beginning of a file.
func Top(file string) Located {
	return place{Filename: file, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// ShowsMuch reports whether a diagnostic would be printed with long values.
func ShowsMuch(d *hcl.Diagnostic) bool {
	if d.Expression == nil || d.EvalContext == nil {
		return false
	}
	return slices.ContainsFunc(d.Expression.Variables(), func(t hcl.Traversal) bool {
		v, _ := t.TraverseAbs(d.EvalContext)
		return weigh(v, MaxDetail) > MaxDetail
	})
}

// Short cuts a text that is to be shown to MaxDetail bytes.
func Short(text string) string {
	if len(text) <= MaxDetail {
		return text
	}
	cut := MaxDetail
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
