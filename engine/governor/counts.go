package governor

import (
	"cmp"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Counts add up calls. Tokens and cost are what the services reported: calls whose result
// is unknown are left out.
type Counts struct {
	Calls        int     `json:"calls"`  // that have ended
	Failed       int     `json:"failed"` // of these; a retry may have succeeded
	InFlight     int     `json:"-"`
	InputTokens  uint64  `json:"input_tokens"` // including cached ones
	CachedTokens uint64  `json:"cached_tokens"`
	OutputTokens uint64  `json:"output_tokens"`
	Cost         float64 `json:"cost"`       // by the stage's price
	CacheHits    int     `json:"cache_hits"` // responses taken from the cache
	CachePuts    int     `json:"cache_puts"` // responses put into it
}

// stage is the state of a stage.
type stage struct {
	Counts
	served    bool     // one of its calls was served
	denied    int      // calls since the last one served
	stopped   error    // why it gets no more calls; nil: it does
	trouble   *breaker // that kept its last call from an answer; nil: none
	relaxed   bool     // it is not required any more
	covered   bool     // others answer its items until its service is back
	unbounded bool     // its calls do not say what they take at most, and that was reported
}

// count adds a call. Who has an alternative to a service is not denied by it.
func (s *stage) count(o sdk.Result, p pipeline.Price, alternative bool) {
	switch {
	case o.Status == sdk.StatusOK:
		s.served, s.denied = true, 0
	case o.Status == sdk.StatusDenied && !alternative:
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
	c.InFlight += o.InFlight
	c.use(o.usage())
	c.Cost += o.Cost
	c.CacheHits += o.CacheHits
	c.CachePuts += o.CachePuts
}

func (c *Counts) subtract(o Counts) {
	c.Calls -= o.Calls
	c.Failed -= o.Failed
	c.InFlight -= o.InFlight
	c.InputTokens -= o.InputTokens
	c.CachedTokens -= o.CachedTokens
	c.OutputTokens -= o.OutputTokens
	c.Cost -= o.Cost
	c.CacheHits -= o.CacheHits
	c.CachePuts -= o.CachePuts
}

// StageCounts are the counts of one stage.
type StageCounts struct {
	Stage string `json:"stage"` // "sample.llm"
	Counts
}

// Snapshot has the counts of a run at one moment.
type Snapshot struct {
	Stages []StageCounts `json:"stages"` // by name
	Total  Counts        `json:"total"`
}

// Snapshot returns the counts so far.
func (c *Governor) Snapshot() Snapshot {
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

// Since returns what was added since an earlier snapshot.
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

// Plus returns the sum of two snapshots: of governors on several machines, or of which one came after the other.
func (s Snapshot) Plus(o Snapshot) Snapshot {
	s.Stages = slices.Clone(s.Stages)
	for _, stage := range o.Stages {
		at, found := slices.BinarySearchFunc(s.Stages, stage.Stage, func(c StageCounts, name string) int { return cmp.Compare(c.Stage, name) })
		if !found {
			s.Stages = slices.Insert(s.Stages, at, StageCounts{Stage: stage.Stage})
		}
		s.Stages[at].add(stage.Counts)
	}
	s.Total.add(o.Total)
	return s
}
