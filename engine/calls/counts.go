package calls

import (
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Counts are what calls came to. Tokens and cost are what the services reported:
// calls whose outcome is not known are not among them.
type Counts struct {
	Calls        int     `json:"calls"`  // that have ended
	Failed       int     `json:"failed"` // of these; a later try may have succeeded
	UnderWay     int     `json:"-"`
	InputTokens  uint64  `json:"input_tokens"` // with the cached ones
	CachedTokens uint64  `json:"cached_tokens"`
	OutputTokens uint64  `json:"output_tokens"`
	Cost         float64 `json:"cost"`     // by the stage's price
	Recalled     int     `json:"recalled"` // answers that came from the cache
	Kept         int     `json:"kept"`     // answers that went into it
}

// stage is what is counted of a stage.
type stage struct {
	Counts
	served    bool  // one of its calls was
	denied    int   // calls since the last that was
	stopped   error // why none is admitted any more; nil: they are
	unbounded bool  // it was reported that nobody knows what its calls take at most
}

func (s *stage) count(o sdk.Result, p pipeline.Price) {
	switch o.Status {
	case sdk.StatusOK:
		s.served, s.denied = true, 0
	case sdk.StatusDenied:
		s.denied++
	}
	s.Calls++
	if o.Status != sdk.StatusOK {
		s.Failed++
	}
	s.use(o.Usage)
	s.Cost += p.Of(o.Usage)
}

// use adds tokens, by Usage.Add, whose sums never wrap.
func (c *Counts) use(u sdk.Usage) {
	all := c.usage()
	all.Add(u)
	c.InputTokens, c.CachedTokens, c.OutputTokens = all.InputTokens, all.CachedTokens, all.OutputTokens
}

func (c *Counts) usage() sdk.Usage {
	return sdk.Usage{InputTokens: c.InputTokens, CachedTokens: c.CachedTokens, OutputTokens: c.OutputTokens}
}

func (c *Counts) add(o Counts) {
	c.Calls += o.Calls
	c.Failed += o.Failed
	c.UnderWay += o.UnderWay
	c.use(o.usage())
	c.Cost += o.Cost
	c.Recalled += o.Recalled
	c.Kept += o.Kept
}

func (c *Counts) subtract(o Counts) {
	c.Calls -= o.Calls
	c.Failed -= o.Failed
	c.UnderWay -= o.UnderWay
	c.InputTokens -= o.InputTokens
	c.CachedTokens -= o.CachedTokens
	c.OutputTokens -= o.OutputTokens
	c.Cost -= o.Cost
	c.Recalled -= o.Recalled
	c.Kept -= o.Kept
}

// StageCounts are the counts of one stage.
type StageCounts struct {
	Stage string `json:"stage"` // "sample.llm"
	Counts
}

// Snapshot is what a run's calls came to so far.
type Snapshot struct {
	Stages []StageCounts `json:"stages"` // by name
	Total  Counts        `json:"total"`
}

// Snapshot returns the counts so far.
func (c *Control) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s Snapshot
	for _, name := range slices.Sorted(maps.Keys(c.stages)) {
		counts := c.stages[name].Counts
		s.Stages = append(s.Stages, StageCounts{name, counts})
		s.Total.add(counts)
	}
	return s
}

// Since returns what has been added since an earlier snapshot.
func (s Snapshot) Since(earlier Snapshot) Snapshot {
	before := map[string]Counts{}
	for _, stage := range earlier.Stages {
		before[stage.Stage] = stage.Counts
	}
	s.Stages = slices.Clone(s.Stages)
	for i := range s.Stages {
		s.Stages[i].subtract(before[s.Stages[i].Stage])
	}
	s.Total.subtract(earlier.Total)
	return s
}
