package sdktest

import (
	"flag"
	"path"
	"slices"
	"strings"
	"testing"
)

// Option tells Stage what to take into account at the stage at hand. All but
// Without are for stores.
type Option func(*options)

type options struct {
	without   map[string]string // path of subtests -> why they are left out
	met       map[string]bool   // paths in without that there are
	denseOnly string
	tolerance float64
	restart   func(testing.TB)
}

// Without leaves out a subtest, and those below it, that a stage cannot pass.
// The path is that of the subtest's name below Stage, as in "filters/prefix".
// It is shown as skipped, with the reason; a path that does not exist fails.
func Without(path, reason string) Option {
	return func(o *options) { o.without[path] = reason }
}

// DenseOnly tests a store, which lacks a lexical leg, on collections without
// one. Subtests that need it are skipped with the reason.
func DenseOnly(reason string) Option {
	return func(o *options) { o.denseOnly = reason }
}

// Tolerance sets how far a score may be from the reference, relative to the
// larger of 1 and the score. The default is 1e-5, which float32 keeps.
func Tolerance(t float64) Option {
	return func(o *options) { o.tolerance = t }
}

// Restart sets what happens between closing and opening a stage in the subtests
// of "restart", such as killing the server and starting it again. The stage is
// opened with the same state folder in any case.
func Restart(restart func(testing.TB)) Option {
	return func(o *options) { o.restart = restart }
}

func optionsOf(all []Option) *options {
	o := &options{without: map[string]string{}, met: map[string]bool{}, tolerance: 1e-5, restart: func(testing.TB) {}}
	for _, set := range all {
		set(o)
	}
	return o
}

// unmet lists what was left out and does not exist, where all subtests ran.
func (o *options) unmet() []string {
	var all []string
	for p := range o.without {
		if !o.met[p] {
			all = append(all, p)
		}
	}
	return all
}

// partial reports whether the command line chose among subtests.
func partial() bool {
	return slices.ContainsFunc([]string{"test.run", "test.skip"}, func(name string) bool {
		f := flag.Lookup(name)
		return f != nil && strings.Contains(f.Value.String(), "/")
	})
}

// tester is testing.TB with subtests. The suite's own tests put another one in
// its place to see a case fail.
type tester interface {
	testing.TB
	Run(name string, test func(tester)) bool
}

// subtest is a tester that leaves out what the options say.
type subtest struct {
	*testing.T
	path    string // below Stage
	options *options
}

func (s subtest) Run(name string, test func(tester)) bool {
	below := path.Join(s.path, name)
	return s.T.Run(name, func(t *testing.T) {
		if reason, ok := s.options.without[below]; ok {
			s.options.met[below] = true
			if strings.TrimSpace(reason) == "" {
				t.Fatal("left out without a reason")
			}
			t.Skip("left out: " + reason)
		}
		test(subtest{t, below, s.options})
	})
}
