package worker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A batch is answered before it is acknowledged, and counts.
func TestAnswered(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.away = 2
		for seq := range 3 {
			r.publish(seq+1, 4, 0)
		}
		_, end := p.start(1)
		time.Sleep(time.Minute)
		if got := p.noted("open", "answer", "done"); got != "open a, answer a/1, done a/1, answer a/2, done a/2, answer a/3, done a/3" {
			t.Error(got)
		}
		w := r.last()
		if w.State != definition.Working || w.Name != "here-1" || w.Batches != 3 || w.Items != 12 || w.Failed != 0 || w.Cost != .5 || w.Tokens != 3 {
			t.Errorf("%+v", w)
		}
		end()
		if got := p.noted("say", "close", "forget"); got != "say joined run a of caller-1, say left run a: this worker ends, close a, forget a" {
			t.Error(got)
		}
	})
}

// A worker takes part in the oldest runs, and one without work makes room for another.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for i := range 6 {
			r := p.add(fmt.Sprint(i))
			if i != 1 { // has nothing to do
				r.work = func(*fake, batch) error { time.Sleep(time.Second); return nil }
				for seq := range 200 {
					r.publish(seq, 1, 0)
				}
			}
		}
		_, end := p.start(0)
		synctest.Wait()
		if got := p.noted("open"); len(got) != len("open 0, open 1, open 2, open 3") || strings.Contains(got, "4") {
			t.Errorf("first: %s", got)
		}
		time.Sleep(3 * idle)
		if got := p.noted("say left", "open 4", "open 5", "close"); got != "say left run 1: "+errIdle.Error()+", close 1, open 4" {
			t.Errorf("then: %s", got)
		}
		close(p.rooms["0"].over)
		close(p.rooms["2"].over)
		time.Sleep(2 * time.Second) // batches that are under way end
		if got := p.noted("open 1", "open 5"); got != "open 1, open 5, open 1" && got != "open 1, open 1, open 5" {
			t.Errorf("at last: %s", got)
		}
		if got := p.noted("forget"); got != "forget 0, forget 2" && got != "forget 2, forget 0" {
			t.Errorf("what is over: %s", got)
		}
		p.ids <- "0" // told again
		end()
		if got := p.noted("open 0"); got != "open 0" {
			t.Errorf("a run that is over: %s", got)
		}
	})
}

// No more batches than --jobs are under way at a time, of all runs together, and each run has its turn.
func TestJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for i := range 3 {
			r := p.add(fmt.Sprint(i))
			r.size = 100
			r.work = func(*fake, batch) error { time.Sleep(time.Second); return nil }
			for seq := range 100 {
				r.publish(seq, 1, 0)
			}
		}
		_, end := p.start(2)
		time.Sleep(30*time.Second + time.Millisecond)
		synctest.Wait()
		total := 0
		for id, r := range p.rooms {
			n := len(r.results)
			if total += n; n < 15 {
				t.Errorf("run %s has %d answers", id, n)
			}
		}
		if total != 60 {
			t.Errorf("%d answers of two at a time in 30 s", total)
		}
		end()
		for _, r := range p.rooms {
			if n := len(r.queue) + len(r.results); n != 100 {
				t.Errorf("of 100 batches %d are there", n)
			}
		}
	})
}

// Who names a number of jobs has that many under way of one run, too.
func TestJobsOfOneRun(t *testing.T) {
	for jobs, want := range map[int]int{0: 2, 1: 1, 5: 5} {
		alone(t, func(t *testing.T, p *place, r *fakeRoom) {
			r.work = func(*fake, batch) error { time.Sleep(time.Second); return nil }
			for seq := range 20 {
				r.publish(seq, 1, 0)
			}
			p.start(jobs)
			synctest.Wait()
			if got := strings.Count(p.noted("begin"), "begin"); got != want {
				t.Errorf("with %d jobs, %d batches are under way, want %d", jobs, got, want)
			}
		})
	}
}

// What a worker lacks is told, and looked for again from time to time.
func TestLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		needs := func(what ...string) error { return &lacksError{what} }
		r := p.add("a")
		r.lacks = []error{needs("no KEY", "no plugin"), needs("no KEY"), needs("no KEY"), errors.New("broken")}
		w, _ := p.start(0)
		synctest.Wait()
		if got := r.last(); got.State != definition.Lacks || strings.Join(got.Lacks, ";") != "no KEY;no plugin" {
			t.Errorf("%+v", got)
		}
		time.Sleep(lookAgain - time.Second)
		if got := p.noted("open"); got != "open a" {
			t.Errorf("too early: %s", got)
		}
		time.Sleep(2 * time.Second)
		w.again.ring()
		synctest.Wait()
		if got := p.noted("open", "say"); got != "open a, say run a: this worker takes no part in it:, say   no KEY, say   no plugin, "+
			"open a, say run a: this worker takes no part in it:, say   no KEY, open a" {
			t.Error(got)
		}
		r.publish(1, 1, 0)
		time.Sleep(lookAgain + time.Second + pauses.First)
		if got := r.last(); got.State != definition.Working || len(got.Lacks) > 0 {
			t.Errorf("%+v", got)
		}
		if got := p.noted("answer"); got != "answer a/1" {
			t.Error(got)
		}
	})
}

// A run that lacks something for this worker does not keep others from their turn, and is left when it is over.
func TestLacksIsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for i := range together + 1 {
			r := p.add(fmt.Sprint(i))
			for range 100 {
				r.lacks = append(r.lacks, &lacksError{[]string{"no KEY"}})
			}
		}
		r := p.add("last")
		r.publish(1, 1, 0)
		p.start(0)
		synctest.Wait()
		if got := p.noted("answer"); got != "answer last/1" {
			t.Error(got)
		}
		close(p.rooms["0"].over)
		synctest.Wait()
		if got := p.noted("forget"); got != "forget 0" {
			t.Error(got)
		}
	})
}

// A worker of another version takes no part, whatever the servers say.
func TestVersions(t *testing.T) {
	for text, says := range map[string]string{
		`{"format":1,"run":"a","racflow":"2"}`: "the run was begun with racflow 2, and this worker is racflow 1: install the same version",
		`{"format":9,"run":"a","racflow":"2"}`: "a newer racflow (2) began the run",
		`{}`:                                   "something else than racflow wrote it",
	} {
		alone(t, func(t *testing.T, p *place, r *fakeRoom) {
			r.definition = []byte(text)
			r.publish(1, 1, 0)
			p.start(0)
			time.Sleep(5 * lookAgain)
			if got := r.last(); got.State != definition.Lacks || len(got.Lacks) != 1 || !strings.Contains(got.Lacks[0], says) {
				t.Errorf("%s: %+v", text, got)
			}
			if got := p.noted("open", "answer"); got != "" {
				t.Errorf("%s: %s", text, got)
			}
		})
	}
}

// Where stages cannot go on here, others have their turn with the batch. If they cannot either, the run hears
// of it.
func TestTrouble(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.size = 1
		broken := errors.New("the process of sample.llm does not start")
		r.trouble = func(run.Answers) error { return broken }
		r.publish(1, 2, 0)
		p.start(0)
		synctest.Wait()
		if got := r.last(); got.State != definition.Lacks || strings.Join(got.Lacks, ";") != broken.Error() {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		if got := p.noted("open", "begin", "return", "answer", "done", "close"); got != "open a, begin a/1, return a/1, close a, "+
			"open a, begin a/1, return a/1, close a, open a, begin a/1, answer a/1, done a/1, close a, open a" {
			t.Error(got)
		}
		if got := r.last(); got.Cost != 4*.5 {
			t.Errorf("%v was spent, by the last of its pipelines alone", got.Cost)
		}
	})
}

// A batch that was given out over and over fails, and no stage sees it.
func TestPoison(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.publish(1, 2, most)
		r.publish(2, 1, most-1)
		p.start(0)
		time.Sleep(definition.WorkerEvery)
		synctest.Wait()
		if got := p.noted("fails"); strings.Count(got, "it was given to workers 10 times with others") != 2 {
			t.Error(got)
		}
		if got := r.last(); got.Items != 3 || got.Failed != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// Answers that cannot travel fail at once, with the reason.
func TestCannotTravel(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.strange = true
		r.publish(1, 2, 0)
		p.start(0)
		synctest.Wait()
		if got := p.noted("answer", "return", "done"); got != "answer a/1, done a/1" {
			t.Error(got)
		}
		if got := p.noted("fails"); strings.Count(got, "the answers of its batch cannot travel: 3 results are not those of 2 rows") != 2 {
			t.Error(got)
		}
	})
}

// What cannot be read is given back. Where nobody can read it, it is answered at last, so that the caller fails with the reason.
func TestUnreadable(t *testing.T) {
	for deliveries, want := range map[int]string{1: "return a/1", most: "return a/1, unread a/1: batch 1.1 cannot be read: "} {
		alone(t, func(t *testing.T, p *place, r *fakeRoom) {
			r.deliver(batch{Position: bus.Position{Part: 1, Seq: 1}, Data: []byte("\x09 no batch"), Deliveries: deliveries})
			p.start(0)
			synctest.Wait()
			if got := r.last(); got.State != definition.Lacks || len(got.Lacks) != 1 || !strings.Contains(got.Lacks[0], "batch 1.1 cannot be read") {
				t.Errorf("%+v", got)
			}
			if got := p.noted("answer", "return"); got != "return a/1" {
				t.Error(got)
			}
			if deliveries == most {
				time.Sleep(time.Minute)
			}
			got := p.noted("return", "unread", "done")
			if !strings.HasPrefix(got, want) || strings.HasSuffix(got, ", done a/1") != (deliveries == most) {
				t.Error(got)
			}
		})
	}
}

// At the end no more are taken, and those that are under way are answered; those that take too long go to others.
func TestDrain(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		gate, long := make(chan struct{}), make(chan struct{})
		r.work = func(_ *fake, b batch) error {
			if b.Seq == 1 {
				<-gate
			} else {
				<-long
			}
			return nil
		}
		for seq := range 3 {
			r.publish(seq+1, 1, 0)
		}
		_, end := p.start(0)
		synctest.Wait()
		ended := make(chan struct{})
		go func() { end(); close(ended) }()
		synctest.Wait()
		if got := r.last(); got.State != definition.Draining {
			t.Errorf("%+v", got)
		}
		close(gate)
		synctest.Wait()
		if got := p.noted("begin", "answer", "return", "forget"); !strings.HasSuffix(got, ", answer a/1") || strings.Contains(got, "begin a/3") {
			t.Error(got)
		}
		time.Sleep(time.Minute + time.Second)
		close(long) // stages notice that they are cut off
		<-ended
		if got := p.noted("answer", "done", "return", "close", "forget"); got != "answer a/1, done a/1, return a/2, close a, forget a" {
			t.Error(got)
		}
	})
}

// The batches of a run that is over are dropped.
func TestOver(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		gate := make(chan struct{})
		r.work = func(*fake, batch) error { <-gate; return nil }
		r.publish(1, 1, 0)
		p.start(0)
		synctest.Wait()
		close(r.over)
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if got := p.noted("answer", "return", "close", "forget", "say left"); got != "return a/1, say left run a: the run is over, close a, forget a" {
			t.Error(got)
		}
		if got := r.last(); got.State != definition.Draining || got.Calls.Total.Cost != .5 {
			t.Errorf("its last word is %+v", got)
		}
	})
}

// A batch that is another's by now, or of an earlier part of the run, is dropped, and the worker goes on.
func TestDropped(t *testing.T) {
	for name, test := range map[string]struct {
		of   func(*batch, <-chan struct{})
		want string
	}{
		"another has it": {func(b *batch, c <-chan struct{}) { b.Lost = c }, "answer a/2, done a/2"},
		"a later part":   {func(b *batch, c <-chan struct{}) { b.Past = c }, "done a/1, answer a/2, done a/2"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, p *place, r *fakeRoom) {
				gate, dropped := make(chan struct{}), make(chan struct{})
				r.work = func(_ *fake, b batch) error {
					if b.Seq == 1 {
						<-gate
					}
					return nil
				}
				data := must.Get(packet.EncodeOrder(run.Order{Rows: []source.Row{{Line: 100}}}))(t)
				first := batch{Position: bus.Position{Part: 1, Seq: 1}, Data: data, Deliveries: 1}
				test.of(&first, dropped)
				r.deliver(first)
				p.start(0)
				synctest.Wait()
				close(dropped)
				synctest.Wait()
				close(gate)
				synctest.Wait()
				r.publish(2, 1, 0)
				synctest.Wait()
				if got := p.noted("answer", "done", "return", "close", "say left"); got != test.want {
					t.Error(got)
				}
			})
		})
	}
}

// A batch that comes again while it is under way here is answered once: this process had been stopped.
func TestComesAgain(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		gate := make(chan struct{})
		r.work = func(*fake, batch) error { <-gate; return nil }
		r.publish(1, 1, 0)
		r.publish(1, 1, 1)
		p.start(0)
		synctest.Wait()
		if got := p.noted("begin"); got != "begin a/1" {
			t.Error(got)
		}
		close(gate)
		synctest.Wait()
		if got := p.noted("answer", "done", "return"); got != "answer a/1, done a/1, done a/1" {
			t.Error(got)
		}
	})
}

// An answer that another has given stands, and this one is dropped without a word.
func TestSecond(t *testing.T) {
	alone(t, func(t *testing.T, p *place, r *fakeRoom) {
		r.results[bus.Position{Part: 1, Seq: 1}] = run.Answers{}
		r.publish(1, 1, 0)
		p.start(0)
		synctest.Wait()
		if got := p.noted("answer", "done", "return"); got != "answer a/1, done a/1" || len(r.results[bus.Position{Part: 1, Seq: 1}].Results) != 0 {
			t.Error(got)
		}
	})
}

// The rate is of the last half minute.
func TestRate(t *testing.T) {
	s, now := newStatus("n"), time.Now()
	for i, items := range []int{0, 20, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} {
		s.count(items, 0)
		got := s.state(now.Add(time.Duration(i) * definition.WorkerEvery)).Rate
		want := 0.
		switch {
		case i > 0 && i <= 15:
			want = float64(min(i, 2)*20) / float64(2*i)
		case i == 16:
			want = 20. / 30
		}
		if got != want {
			t.Errorf("after %d s: %v items a second, want %v", 2*i, got, want)
		}
	}
}
