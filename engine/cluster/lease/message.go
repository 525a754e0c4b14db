package lease

import (
	"time"

	"github.com/racflow/racflow/engine/governor"
)

// Amount is money, in that of the file's prices, and tokens, in and out.
type Amount = governor.Amount

// report is what a holder tells the keeper.
type report struct {
	Holder  string `json:"holder"` // no other ever has the same
	Leaving bool   `json:"leaving,omitempty"`
	governor.Demand
}

// answer is what a holder is granted. It counts from the moment in which the report was sent, so
// that the holder's lease is over before the keeper's is.
type answer struct {
	Keeper   string           `json:"keeper"`
	Lease    time.Duration    `json:"lease"`
	Every    time.Duration    `json:"every"` // how often to report
	Limiters []governor.Given `json:"limiters,omitempty"`
	Budget   Amount           `json:"budget,omitzero"`
	Spent    string           `json:"spent,omitempty"`
	Trials   []string         `json:"trials,omitempty"`
}

// name of a limiter.
type name struct{ block, endpoint string }
