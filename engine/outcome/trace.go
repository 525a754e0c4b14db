package outcome

// Rule is a rule of the file that decided something about an item.
type Rule struct {
	Stage string `json:"stage"` // as "sample.llm", or "sample.llm, fallback.other"
	Rule  string `json:"rule"`  // one of the names below
	// N of Of candidates were dropped, or answers refused.
	N  int `json:"n,omitempty"`
	Of int `json:"of,omitempty"`
	// Name is the fallback that took over; Why is what it took over for, or why a stage that
	// may be skipped was.
	Name string `json:"name,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Rules that decide about items, by the arguments and blocks of the file.
const (
	RuleWhen     = "when"     // it does not hold: the stage was not asked
	RuleKeep     = "keep"     // it dropped candidates
	RuleAccept   = "accept"   // it refused answers
	RuleFlag     = "flag"     // it holds: a person should look at the item
	RuleFallback = "fallback" // it holds: the fallback took over
	RuleOnError  = "on_error" // the stage failed, and the item went on without it
)

// Retry is a stage that was called again about an item.
type Retry struct {
	Stage string `json:"stage"` // as in Rule
	Why   string `json:"why"`   // it had to be
	Times int    `json:"times"`
}

// maxWhy is how many bytes of a cause are kept.
const maxWhy = 300

// Why is what an error says, cut to what is worth keeping of every item.
func Why(err error) string { return cutTo(err.Error(), maxWhy) }
