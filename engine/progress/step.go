package progress

import "time"

// Step is how far a piece of work is.
type Step struct {
	Doing string // "answering", "embedding", ...
	Name  string // of what it is done to, such as a knowledge; may be empty
	Unit  string // of Done and Total, such as "item"; Bytes for bytes
	Done  int64
	Total int64 // 0: not known
	About bool  // Total is estimated, from how much of a file has been read

	Passages int64         // of a knowledge that is built of documents, so far
	Flagged  int64         // of the items that are done
	Failed   int64         // of these
	Paid     float64       // what calls of services came to so far, in the currency of the prices
	Elapsed  time.Duration // of work that does not say how far it is
}

// Bytes is the unit of work that is measured in bytes.
const Bytes = "byte"

// Func is told of steps, by several goroutines at once. nil: nobody wants to know.
type Func func(Step)

// Report calls the function, if there is one.
func (f Func) Report(s Step) {
	if f != nil {
		f(s)
	}
}
