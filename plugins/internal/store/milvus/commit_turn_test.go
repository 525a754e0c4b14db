package milvus

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
)

// The record of turn 2 arrives after turn 3 has read what the last commit is and before
// it has written that down. Turn 2 does not count then, but readers may have seen its
// commit: while that may be, turn 3 removes nothing.
func TestDisputedTurn(t *testing.T) {
	for name, test := range map[string]struct {
		age  time.Duration
		want bool
	}{"young": {time.Second, true}, "old": {settled + time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(t, 1)
			s.calm = true
			s.createTable()
			put := func(r Record) {
				text, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				key := TurnKey(r.Commit, "record")
				s.engine.rows[key] = map[string]any{table.FieldKey: key, table.FieldSequence: table.SystemSequence, table.FieldText: string(text)}
			}
			put(Record{Commit: 1})
			claim := TurnKey(2, "claim", "b")
			s.engine.rows[claim] = map[string]any{table.FieldKey: claim, table.FieldSequence: table.SystemSequence, table.FieldText: `{"turn": 2, "holder": "b"}`}
			var got *turn
			p := s.start("turn 3", func(p *process, t *table.Table, _ *rand.Rand) { got, _ = takeTurn(p.ctx, t) })
			for done := false; !done; {
				synctest.Wait()
				s.mu.Lock()
				done = p.done
				if len(s.waiting) > 0 && strings.Contains(s.waiting[0].what, TurnKey(3, "base")) {
					put(Record{Commit: 2, Time: time.Now().Add(-test.age).Unix()})
				}
				pause := s.step()
				s.mu.Unlock()
				time.Sleep(pause)
			}
			p.die()
			if got == nil || got.base.Commit != 1 || got.disputed != test.want {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}
