package packet

import (
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// decided is an outcome.Decision; At is a text, with its offset.
type decided struct {
	By int `json:"by,omitempty"`
	At int `json:"at,omitempty"`
}

func (w *writer) decided(d *outcome.Decision) *decided {
	if d == nil {
		return nil
	}
	out := &decided{By: w.text(d.By)}
	if d.At != (time.Time{}) {
		at, err := d.At.MarshalText()
		if err != nil && w.err == nil {
			w.err = err
		}
		out.At = w.text(string(at))
	}
	return out
}

func (r *reader) decided(in *decided) *outcome.Decision {
	if in == nil {
		return nil
	}
	out := &outcome.Decision{By: r.text(in.By)}
	if in.At != 0 {
		if err := out.At.UnmarshalText([]byte(r.text(in.At))); err != nil {
			r.fail("%v", err)
		}
	}
	return out
}

// prompted is an outcome.Prompted: the hashes of its prompts.
type prompted struct {
	Stage  int   `json:"stage"`
	Hashes []int `json:"hashes,omitzero"`
}

func (w *writer) prompts(all []outcome.Prompted) []prompted {
	return each(all, func(p outcome.Prompted) prompted {
		return prompted{w.text(p.Stage), each(journal.Hashes(p), w.text)}
	})
}

func (r *reader) prompts(in []prompted) []outcome.Prompted {
	return each(in, func(p prompted) outcome.Prompted {
		return outcome.Prompted{Stage: r.text(p.Stage), Hashes: each(p.Hashes, r.text)}
	})
}

// requests are columns: the keys stand one after the other.
type requests struct {
	Voters []int  `json:"voters,omitempty"`
	Keys   []byte `json:"keys,omitempty"`
}

func (w *writer) requests(all []outcome.Request) *requests {
	if all == nil {
		return nil
	}
	out := &requests{}
	for _, q := range all {
		out.Voters, out.Keys = append(out.Voters, w.text(q.Voter)), append(out.Keys, q.Key[:]...)
	}
	return out
}

func (r *reader) requests(in *requests) []outcome.Request {
	if in == nil {
		return nil
	}
	const size = len(sdk.Key{})
	if len(in.Keys) != size*len(in.Voters) {
		r.fail("%d requests have %d bytes of keys", len(in.Voters), len(in.Keys))
		return nil
	}
	all := make([]outcome.Request, len(in.Voters))
	for i, voter := range in.Voters {
		all[i] = outcome.Request{Voter: r.text(voter), Key: sdk.Key(in.Keys[size*i:])}
	}
	return all
}

// pairs are texts by texts.
func (w *writer) pairs(all map[string]string) []int {
	if all == nil {
		return nil
	}
	out := []int{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, w.text(key), w.text(all[key]))
	}
	return out
}

func (r *reader) pairs(in []int) map[string]string {
	if in == nil || !r.tuples("pairs", in, 2) {
		return nil
	}
	all := map[string]string{}
	for pair := range slices.Chunk(in, 2) {
		all[r.text(pair[0])] = r.text(pair[1])
	}
	return all
}
