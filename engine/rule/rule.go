package rule

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/sdk"
)

// Kind is the argument that a rule stands in; it decides what the rule sees.
type Kind uint8

// The kinds of rules.
const (
	When        Kind = iota + 1 // of a stage: does it work on this item?
	Keep                        // of retrieve: does this candidate stay?
	Accept                      // of sample and elect: may this answer count?
	Flag                        // of elect: should a person look at this verdict?
	Fallback                    // of a fallback block: does it take over this item?
	Filtering                   // filter of retrieve: is this entry searched? See CompileFilter
	Whole                       // whole of retrieve: does all of the knowledge take the place of a search?
	Expectation                 // rule of expect: is what was measured good enough?
)

// Scope is what stands above a rule in the file: a name that nothing above
// writes is an error in the rule that reads it.
type Scope struct {
	Candidates bool                 // a retrieve stage stands above (or this is its own rule)
	Voters     bool                 // a sample stage stands above (or this is an elect's rule)
	Election   bool                 // Expectation: the pipeline has an elect stage
	Vars       map[string]cty.Value // var.x, already evaluated
	Texts      bool                 // Filtering: all metadata of the entries are texts
}

// Env is what a rule sees of one item. The engine fills the fields that the
// rule Reads and may leave the others empty. An Env belongs to one goroutine
// at a time; Item.Candidates must not change once a rule has seen them, but
// Candidate, Rank and Answer may.
type Env struct {
	Item            sdk.Item // id, text, meta as item.id ...; Candidates as candidates
	Labels          *LabelSet
	CandidateLabels []string
	Margin          float64 // of the mean ballot of the voters so far: best minus second
	Agreement       float64 // its best share
	Votes           []Vote
	Candidate       *sdk.Candidate // Keep: id, text, label, meta, score, dense, lexical
	Rank            int            // Keep: 1 is the best
	Answer          string         // Accept: the answer in question; Flag: the verdict's
	Confidence      float64        // Flag: of the verdict; its agreement where the election does not estimate one
	Failed          bool           // Fallback: the stage failed on this item
	Error           string         // Fallback: why
	Knowledge       Extent         // Whole: of the knowledge in question
	Measured        Measured       // Expectation: what its figures are

	views  []*candidate   // of Item.Candidates, made when a rule first asks
	viewed *sdk.Candidate // the first of those that views was made from
}

// Extent is how much a knowledge holds.
type Extent struct {
	Tokens  int `expr:"tokens"` // roughly, of all texts and their contexts
	Entries int `expr:"entries"`
}

// Vote is one answer of one voter, as rules see it.
type Vote struct {
	Voter    string  `expr:"voter"`
	Answer   string  `expr:"answer"`
	Weight   float64 `expr:"weight"`
	Accepted bool    `expr:"accepted"`
}
