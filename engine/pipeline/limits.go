package pipeline

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

// The bounds of loading. What a file may ask for is counted in bytes, so that
// it does not depend on the machine; the time is for what cannot be counted.
const (
	maxWork        = 16 << 20 // bytes of all values that are made on the way
	maxTime        = time.Minute
	maxDiagnostics = 100
	maxDetail      = 2000 // bytes of one diagnostic's detail
	overhead       = 100  // bytes of a value beside its text
)

// errSlow is the cause of a context that ended because of maxTime.
var errSlow = fmt.Errorf("it takes longer than %v", maxTime)

// stopped ends loading at once: it is thrown, and caught by parse.
type stopped struct{ diag *hcl.Diagnostic }

// located is something that stands in a file.
type located interface{ Range() hcl.Range }

// spend takes n bytes from what is left of maxWork for the work on something,
// and ends loading where not enough is left or the context has ended.
func (l *loader) spend(on located, n int) {
	if l.ctx.Err() != nil {
		panic(stopped{l.interrupted()})
	}
	at := on.Range()
	switch {
	case n == math.MaxInt:
		panic(stopped{&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Number out of range", Subject: &at,
			Detail: fmt.Sprintf("A number has at most %d binary digits before and after its point. Write a smaller one.", maxDigits),
		}})
	case n > l.left:
		panic(stopped{&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Expressions too large", Subject: &at,
			Detail: fmt.Sprintf("The expressions of a file make at most %d MiB of texts and lists, and this one exceeds that. "+
				"Build less here, or keep the content in a file that a stage or source reads.", maxWork>>20),
		}})
	}
	l.left -= n
}

func tooMany() *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Too many errors",
		Detail: fmt.Sprintf("Only the first %d are shown.", maxDiagnostics),
	}
}

// interrupted says why the context of loading has ended, and where.
func (l *loader) interrupted() *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Interrupted", Detail: "Loading was interrupted."}
	if errors.Is(context.Cause(l.ctx), errSlow) {
		d.Summary = "Loading takes too long"
		d.Detail = fmt.Sprintf("Loading has not ended within %v. This is what it was busy with.", maxTime)
	}
	if on := l.at.Load(); on != nil {
		at := (*on).Range()
		d.Subject = &at
	}
	return d
}

// busy notes what loading is busy with, and returns a function that takes it
// back.
func (l *loader) busy(on located) (done func()) {
	before := l.at.Swap(&on)
	return func() { l.at.Store(before) }
}

// spot is a range as something that is located.
type spot hcl.Range

// Range implements located.
func (s spot) Range() hcl.Range { return hcl.Range(s) }

// top is the beginning of a file.
func top(file string) spot {
	return spot{Filename: file, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// showsMuch reports whether the values that are printed with a diagnostic are long.
func showsMuch(d *hcl.Diagnostic) bool {
	if d.Expression == nil || d.EvalContext == nil {
		return false
	}
	return slices.ContainsFunc(d.Expression.Variables(), func(t hcl.Traversal) bool {
		v, _ := t.TraverseAbs(d.EvalContext)
		return weigh(v, maxDetail) > maxDetail
	})
}

// short cuts a text that is to be shown.
func short(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	cut := maxDetail
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
