package progress

// Step is a report of how far a piece of work is.
type Step struct {
	Doing string // "answering", "embedding", ...
	Name  string // the object of the work, such as a knowledge; may be empty
	Unit  string // of Done and Total, such as "item"; BytesUnit for bytes
	Done  int64
	Total int64 // 0: unknown
	About bool  // Total is an estimate from how much of a file has been read

	Passages int64   // so far, if a knowledge is built from documents
	Flagged  int64   // among the items done
	Failed   int64   // among the items done
	Paid     float64 // cost of calls of services so far, in the currency of the prices
}

// BytesUnit is the unit of work that is measured in bytes.
const BytesUnit = "byte"

// Func takes steps, from several goroutines at once. nil: nobody wants them.
type Func func(Step)

// Report calls the function, if there is one.
func (f Func) Report(s Step) {
	if f != nil {
		f(s)
	}
}
