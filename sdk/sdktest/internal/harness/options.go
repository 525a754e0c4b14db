package harness

import (
	"flag"
	"path"
	"slices"
	"strings"
	"testing"
)

// Options are what package sdktest's options set.
type Options struct {
	Without   map[string]string // path of subtests -> why they are left out
	DenseOnly string            // why a store is tested without a lexical leg; empty: it has one
	Tolerance float64           // of scores, relative to the larger of 1 and the score
	Restart   func(testing.TB)  // between closing a store and opening it again

	met map[string]bool // paths in Without that there are
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Without: map[string]string{}, met: map[string]bool{}, Tolerance: 1e-5, Restart: func(testing.TB) {}}
}

// Unmet lists what was left out and does not exist, where all subtests ran: the
// command line may have chosen among them.
func (o *Options) Unmet() []string {
	chosen := slices.ContainsFunc([]string{"test.run", "test.skip"}, func(name string) bool {
		f := flag.Lookup(name)
		return f != nil && strings.Contains(f.Value.String(), "/")
	})
	var all []string
	for p := range o.Without {
		if !o.met[p] && !chosen {
			all = append(all, p)
		}
	}
	return all
}

// Tester is testing.TB with subtests. The suite's own tests put another one in
// its place to see a case fail.
type Tester interface {
	testing.TB
	Run(name string, test func(Tester)) bool
}

// subtest is a Tester that leaves out what the options say.
type subtest struct {
	*testing.T
	path    string // below Stage
	options *Options
}

// Subtests is a test as a Tester.
func Subtests(t *testing.T, o *Options) Tester { return subtest{t, "", o} }

func (s subtest) Run(name string, test func(Tester)) bool {
	below := path.Join(s.path, name)
	return s.T.Run(name, func(t *testing.T) {
		if reason, ok := s.options.Without[below]; ok {
			s.options.met[below] = true
			if strings.TrimSpace(reason) == "" {
				t.Fatal("left out without a reason")
			}
			t.Skip("left out: " + reason)
		}
		test(subtest{t, below, s.options})
	})
}
