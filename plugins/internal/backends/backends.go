package backends

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
)

// Backend is one of the services of a voter.
type Backend struct {
	*chatmodel.Model
	Index   int          // among all
	Same    int          // index of the first with the same model
	Choices atomic.Int32 // most in one request

	name   string
	share  float64
	denied atomic.Int32 // requests in a row
}

// Set are the services of a voter. Its methods may be called by several goroutines.
type Set struct {
	All []*Backend // main first

}

// New returns the services of configs that Check finds no error in.
func New(main chatmodel.Config, c Arguments, setup sdk.Setup) *Set {
	s := &Set{}
	for i, config := range c.all(main) {
		name := Main
		if i > 0 {
			name = c.Backends[i-1]
		}
		b := &Backend{Model: chatmodel.New(config, setup), Index: i, name: name, share: c.Shares[name]}
		b.Same = slices.IndexFunc(s.All, func(other *Backend) bool { return other.Name() == b.Name() })
		if b.Same < 0 {
			b.Same = i
		}
		s.All = append(s.All, b)
	}
	if c.Shares == nil {
		s.All[0].share = 1
	}
	return s
}

// Models implements sdk.Prober.
func (s *Set) Models() []sdk.Model {
	var all []sdk.Model
	for _, b := range s.All {
		all = append(all, b.Models()...)
	}
	return all
}

// Close closes idle connections.
func (s *Set) Close() error {
	for _, b := range s.All {
		_ = b.Close() // it has no error
	}
	return nil
}

// Choose returns the service that an answer is to come from: by a weighted rendezvous hash
// (Schindelhauer and Schomaker, Weighted distributed hash tables, 2005) of what the answer
// is to.
func (s *Set) Choose(question sdk.Key, number int) *Backend {
	best, most := s.All[0], math.Inf(-1)
	for _, b := range s.All {
		if b.share == 0 {
			continue
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", question, number, b.name))
		drawn := (float64(binary.BigEndian.Uint64(sum[:])>>11) + .5) / (1 << 53) // between 0 and 1
		if score := b.share / -math.Log(drawn); score > most {
			best, most = b, score
		}
	}
	return best
}

// Has reports whether one of the services has a model.
func (s *Set) Has(model string) bool {
	return slices.ContainsFunc(s.All, func(b *Backend) bool { return b.Name() == model })
}

// maxDenied is how many requests in a row a service may deny until it is not asked any more.
const maxDenied = 3

// Do asks the chosen service, and the others where that does not serve. Its error is one that no
// other service would spare, or says that none serves now. Where the rows are to wait for one of them, it is
// transient: the host decides that.
func (s *Set) Do(ctx context.Context, chosen *Backend, ask func(context.Context, *Backend) error) error {
	if len(s.All) == 1 {
		return ask(ctx, chosen)
	}
	order := s.order(chosen)
	var later error
	for _, b := range order {
		err := ask(api.WithAlternative(ctx), b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !elsewhere(err) {
			b.denied.Store(0)
			return err
		}
		b.WarnOnce("backend", "a service does not serve the voter: the next one is asked", "service", b.name, "address", b.Address(), "error", err)
		switch {
		case sdk.CodeOf(err) == sdk.CodeTransient:
			later = sooner(later, err)
		case api.Denied(err):
			b.denied.Add(1)
		}
	}
	if later != nil { // it may pass
		return later
	}
	return ask(ctx, order[0])
}

// order is the chosen service and then the others, without those that deny everything.
func (s *Set) order(chosen *Backend) []*Backend {
	order := []*Backend{chosen}
	for _, b := range s.All {
		if b != chosen {
			order = append(order, b)
		}
	}
	serve := slices.DeleteFunc(slices.Clone(order), func(b *Backend) bool { return b.denied.Load() >= maxDenied })
	if len(serve) == 0 {
		return order
	}
	return serve
}

// elsewhere reports whether another service may answer where one has given an error.
func elsewhere(err error) bool {
	code := sdk.CodeOf(err)
	return err != nil && (code == sdk.CodeTransient || code == sdk.CodeUnavailable || api.Denied(err))
}

// sooner is the error of two that has the shorter time to wait; one with a time goes before one
// without, which would count as a retry.
func sooner(a, b error) error {
	if a == nil {
		return b
	}
	x, y := new(sdk.Error), new(sdk.Error)
	if errors.As(a, &x) && errors.As(b, &y) && y.RetryAfter > 0 && (x.RetryAfter == 0 || y.RetryAfter < x.RetryAfter) {
		return b
	}
	return a
}
