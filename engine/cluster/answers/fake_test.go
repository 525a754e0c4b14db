package answers

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/sdk"
)

// fake is a run at servers that are in memory.
type fake struct {
	mu     sync.Mutex
	kept   []bus.Answer // in order of storage
	more   chan struct{}
	away   chan struct{} // closed: the servers are there
	serves func([]byte) []byte
	asked  [][]sdk.Key // questions to the caller
	looked int         // into the bucket
	hold   func()      // called before a question is passed on; may be nil
}

func newFake() *fake {
	there := make(chan struct{})
	close(there)
	return &fake{more: make(chan struct{}), away: there}
}

// leave takes the servers away until back is called.
func (f *fake) leave() (back func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	away := make(chan struct{})
	f.away = away
	return func() { close(away) }
}

// there waits for the servers.
func (f *fake) there(ctx context.Context) error {
	f.mu.Lock()
	away := f.away
	f.mu.Unlock()
	select {
	case <-away:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fake) ID() string { return "k3v9q2" }

func (f *fake) find(key string) []byte {
	if i := slices.IndexFunc(f.kept, func(a bus.Answer) bool { return a.Key == key }); i >= 0 {
		return f.kept[i].Value
	}
	return nil
}

func (f *fake) Answered(ctx context.Context, key string) ([]byte, error) {
	if err := f.there(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked++
	return f.find(key), nil
}

func (f *fake) KeepAnswer(ctx context.Context, key string, value []byte) ([]byte, error) {
	if err := f.there(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if stands := f.find(key); stands != nil {
		return stands, nil
	}
	f.kept = append(f.kept, bus.Answer{Key: key, Value: slices.Clone(value), Sequence: uint64(len(f.kept) + 1)})
	close(f.more)
	f.more = make(chan struct{})
	return value, nil
}

var errNobody = errors.New("nobody")

func (f *fake) Ask(ctx context.Context, about string, data []byte) ([]byte, error) {
	if about != subject {
		return nil, errNobody
	}
	f.mu.Lock()
	f.asked = append(f.asked, decodeQuestion(data))
	serves, hold := f.serves, f.hold
	f.mu.Unlock()
	if hold != nil {
		hold()
	}
	if serves == nil {
		return nil, errNobody
	}
	return serves(data), ctx.Err()
}

func (f *fake) Serve(_ string, serves func([]byte) []byte) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serves = serves
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.serves = nil
	}, nil
}

func (f *fake) LastAnswer(context.Context) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(len(f.kept)), nil
}

func (f *fake) Answers(ctx context.Context, after uint64) iter.Seq2[bus.Answer, error] {
	return func(yield func(bus.Answer, error) bool) {
		for {
			f.mu.Lock()
			more := f.more
			rest := slices.Clone(f.kept[after:])
			f.mu.Unlock()
			for _, a := range rest {
				if !yield(a, nil) {
					return
				}
				after = a.Sequence
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}
