package attached

import (
	"encoding/json"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

func (v *view) refuses() {
	before := v.foreign.Look(v, v.setup.Config)
	s, ctx, name := v.process.Stage, v.Context(), v.found.Name
	for what, err := range map[string]error{
		"Put":    s.Put(ctx, name, []sdk.Entry{{ID: "1", Text: "new", Vector: v.rows[0].Vector}}),
		"Delete": s.Delete(ctx, name, []string{v.rows[0].ID}),
		"Commit": s.Commit(ctx, name, []byte("note")),
		"Drop":   s.Drop(ctx, name),
	} {
		if err == nil || sdk.CodeOf(err) != sdk.CodeInvalid {
			v.Errorf("%s gives %v, want an error made by sdk.Invalid", what, err)
		}
	}
	lists, err := v.retrieve(sdk.ModeDense, 5, queries(1)[0])
	if err != nil {
		v.Fatalf("a search after that: %v", err)
	}
	v.check(queries(1)[0], 5, lists[0])
	v.process.Close()
	if after := v.foreign.Look(v, v.setup.Config); after != before {
		v.Errorf("the collection was changed: from\n%s\nto\n%s", before, after)
	}
}

// unknown attaches a collection that is not there.
func (v *view) unknown() {
	const name = "no_such_collection_of_anybody"
	var config map[string]any
	if err := json.Unmarshal([]byte(v.setup.Config), &config); err != nil {
		v.Fatalf("the config that Make returned: %v", err)
	}
	config[v.Stage.Attaches] = name
	raw, err := json.Marshal(config)
	if err != nil {
		v.Fatalf("%v", err)
	}
	v.setup.Config = string(raw)
	p, err := v.Open(v, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	for range 2 { // the first call has not made it
		if _, err := p.Stage.Attach(v.Context()); err == nil || sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), name) {
			v.Fatalf("a collection %s that is not there gives %v, want an error made by sdk.Invalid that names it", name, err)
		}
	}
}

// before uses the name in a process that has not attached it.
func (v *view) before() {
	p, err := v.Open(v, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	v.process = p
	_, searched := v.retrieve(sdk.ModeDense, 5, queries(1)[0])
	_, got := p.Stage.Get(v.Context(), v.found.Name, []string{v.rows[0].ID})
	_, scanned := p.Stage.Scan(v.Context(), v.found.Name, sdk.Scan{})
	if searched == nil || got == nil || scanned == nil {
		v.Errorf("before Attach, Search gives %v, Get %v, Scan %v", searched, got, scanned)
	}
}

// together searches while Attach is called.
func (v *view) together() {
	q := queries(1)[0]
	var calls errgroup.Group
	lists := make([][][]sdk.Candidate, 16)
	for i := range lists {
		calls.Go(func() (err error) {
			if i%4 == 0 {
				_, err = v.process.Stage.Attach(v.Context())
			}
			if err == nil {
				lists[i], err = v.retrieve(sdk.ModeDense, 10, q)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		v.Fatalf("%v", err)
	}
	for _, list := range lists {
		v.check(q, 10, list[0])
	}
}
