package run

import (
	"context"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Remote answers batches in the place of this machine's stages.
type Remote interface {
	// Answer returns what became of the rows of an order, once all of it is known. It may be
	// called by several goroutines at once. An error says that nobody can answer: it is not
	// the rows'.
	Answer(ctx context.Context, o Order) (Answers, error)
	// Window is how many orders are to be under way at a time, of so many items each.
	Window(items int) int
}

// Pass says which of a run's passes over its input an order belongs to (package spend).
type Pass uint8

// The passes of a run. One that may spend as much as it likes has a single one.
const (
	Once   Pass = iota // every voter is asked
	Survey             // no paid voter is asked: Answers.Bills say what asking takes
	Asking             // the paid voters are asked
)

// Order is rows to be answered together.
type Order struct {
	Rows []source.Row // none has an Err
	Pass Pass
}

// Answers are what became of the rows of an order.
type Answers struct {
	Results []outcome.Result // of each row, in their order; of those that are left, nothing
	// Left are the rows, by position, that have no answer because a voter had to stop and the
	// others have none; the error is that voter's.
	Left  map[int]error
	Bills map[int]outcome.Bill // by position: what the paid voters were asked, or asking takes
	// Halted are the stages that had to stop, without which others answer.
	Halted []*outcome.Failure
	Ended  error // why no more rows can be answered: a stage that all need had to stop; nil: they can

	Distributions []string            // voters that return distributions
	Times         []outcome.StageTime // the stages' work since the last answers of the same worker
}
