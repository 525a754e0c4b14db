package milvus

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// alone runs one process against a server that makes no mistakes and answers each call
// after a while. It returns when the record of a commit was sent.
func alone(t *testing.T, while time.Duration, work func(*simulation, *process, *table.Table)) (sent time.Time) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 1)
		s.calm = true
		s.createTable()
		p := s.start("alone", func(p *process, table *table.Table, _ *rand.Rand) { work(s, p, table) })
		for done := false; !done; {
			time.Sleep(while)
			synctest.Wait()
			s.mu.Lock()
			if done = p.done; !done && len(s.waiting) > 0 {
				for _, c := range s.waiting {
					if strings.Contains(c.what, TurnKey(1, "record")) {
						sent = c.sent
					}
				}
				s.step()
			}
			s.mu.Unlock()
		}
		p.die()
	})
	return sent
}

func newWriter(t *table.Table) *Writer {
	return &Writer{View: &View{Collection: t.Collection}, Log: slog.New(slog.DiscardHandler)}
}

// build makes the first commit of a collection.
func build(ctx context.Context, t *table.Table, id string) error {
	w := newWriter(t)
	if _, err := w.Open(ctx, t); err != nil {
		return err
	}
	if err := w.Put(ctx, []sdk.Entry{{ID: id, Text: "tea of " + id, Vector: []float32{1, 0}}}); err != nil {
		return err
	}
	return w.Commit(ctx, []byte(id))
}

// A collection that was dropped and made again counts turns and sequence numbers anew:
// nobody may take it for the one before.
func TestDroppedCollection(t *testing.T) {
	alone(t, time.Millisecond, func(s *simulation, p *process, table *table.Table) {
		ctx := p.ctx
		atWork, opened, reader := newWriter(table), newWriter(table), &View{Collection: table.Collection}
		err := build(ctx, table, "old")
		if err == nil {
			_, err = opened.Open(ctx, table)
		}
		var old *Snapshot
		if err == nil {
			old, err = atWork.Open(ctx, table)
		}
		if err == nil {
			reader.Set(old)
			err = atWork.Delete(ctx, []string{"old"})
		}
		if err == nil {
			err = table.Create(ctx) // the simulated server forgets the one before
		}
		if err == nil {
			err = build(ctx, table, "new")
		}
		if err != nil {
			s.t.Error(err)
			return
		}
		if err := atWork.Commit(ctx, []byte("late")); err == nil || !strings.Contains(err.Error(), "dropped by another process: open it again") {
			s.t.Errorf("the writer that was at work has the error %v", err)
		}
		if err := opened.Delete(ctx, []string{"old"}); err == nil || !strings.Contains(err.Error(), "changed by another process") {
			s.t.Errorf("a writer that had opened the collection has the error %v", err)
		}
		time.Sleep(3 * time.Second)
		err = reader.Read(ctx, func(now *Snapshot) error {
			if string(now.Note) != "new" {
				s.t.Errorf("a reader still sees %q", now.Note)
			}
			return nil
		})
		if err != nil {
			s.t.Error(err)
		}
	})
}

// How long a reader may rely on a snapshot, and when the dead rows of a commit may be
// removed, does not begin too early or too late where the server is slow.
func TestSlowServer(t *testing.T) {
	var record Record
	sent := alone(t, 15*time.Second, func(s *simulation, p *process, table *table.Table) {
		if err := build(p.ctx, table, "a"); err != nil {
			s.t.Error(err)
			return
		}
		began := time.Now()
		read, err := ReadSnapshot(p.ctx, table, nil)
		if err != nil {
			s.t.Error(err)
			return
		}
		record = read.Record
		if read.Seen.After(began) {
			s.t.Errorf("a reader that asked at %v relies on what it saw at %v", began, read.Seen)
		}
	})
	if until := time.Unix(record.Time, 0); until.Before(sent) {
		t.Errorf("the record was sent at %v and says %v", sent, until)
	}
}

// The lease of a writer whose clock is ahead ends late by as much.
func TestClockAhead(t *testing.T) {
	for ahead, want := range map[time.Duration]bool{0: false, time.Hour: true} {
		alone(t, time.Millisecond, func(s *simulation, p *process, table *table.Table) {
			theirs := turn{table: table, Claim: Claim{Turn: 1, Holder: "other", Until: time.Now().Add(leaseTime + ahead).Unix()}}
			err := theirs.put(p.ctx, theirs.Claim, "claim", theirs.Holder)
			if err == nil {
				_, err = takeTurn(p.ctx, table)
			}
			if err == nil || strings.Contains(err.Error(), "set the clocks") != want {
				s.t.Errorf("%v ahead: %v", ahead, err)
			}
		})
	}
}

// A row that the server has taken and shows some reads later is waited for, but not for
// long.
func TestRowShownLate(t *testing.T) {
	for reads, want := range map[int]bool{looks - 1: true, looks: false} {
		alone(t, time.Millisecond, func(s *simulation, p *process, table *table.Table) {
			s.engine.late[TurnKey(1, "record")] = reads
			err := build(p.ctx, table, "a")
			if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "may have been committed") {
				s.t.Errorf("not shown to %d reads: %v", reads, err)
			}
		})
	}
}
