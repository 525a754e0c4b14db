package progress

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReporter: a stage is reported that is silent, with its first reason and all calls.
func TestReporter(t *testing.T) {
	tests := map[string]struct {
		do   func(r *WaitReporter)
		want []string
	}{
		"nothing": {func(*WaitReporter) { time.Sleep(time.Hour) }, nil},
		"a moment": {func(r *WaitReporter) {
			release := r.Hold(Wait{Stage: "a", Why: "it is slow", Since: time.Now(), After: WaitSoon})
			time.Sleep(4 * time.Second)
			release()
			time.Sleep(time.Hour)
		}, nil},
		"a while": {func(r *WaitReporter) {
			release := r.Hold(Wait{Stage: "a", Calls: 2, Why: "it is slow", Since: time.Now(), Next: time.Now().Add(40 * time.Second), After: WaitSoon})
			time.Sleep(50 * time.Second)
			release()
		}, []string{"5 waiting for a: 2 calls, it is slow, next try in 35 s", "35 waiting for a: 2 calls, it is slow, next try in 5 s"}},
		"a call": {func(r *WaitReporter) {
			defer r.Hold(Wait{Stage: "a", Calls: 1, Why: "no reply", Since: time.Now(), After: WaitLate})()
			time.Sleep(59 * time.Second)
		}, []string{"30 waiting for a: 1 call, no reply"}},
		"answers": {func(r *WaitReporter) {
			defer r.Hold(Wait{Stage: "a", Calls: 1, Why: "it is slow", Since: time.Now(), After: WaitSoon})()
			for range 9 {
				time.Sleep(4 * time.Second)
				r.Answered("a")
			}
			time.Sleep(6 * time.Second)
		}, []string{"41 waiting for a: 1 call, it is slow"}},
		"two stages": {func(r *WaitReporter) {
			for _, stage := range []string{"b", "a"} {
				defer r.Hold(Wait{Stage: stage, Why: "it is slow", Since: time.Now(), After: WaitSoon})()
			}
			time.Sleep(6 * time.Second)
		}, []string{"5 waiting for a: it is slow", "5 waiting for b: it is slow"}},
		"several reasons": {func(r *WaitReporter) {
			begun := time.Now()
			forget := r.Watch(func(_ time.Time, say func(Wait)) {
				say(Wait{Stage: "a", Calls: 7, Why: "no reply", Since: begun, After: WaitLate})
				say(Wait{Stage: "a", Calls: 3, Why: "429", Since: begun.Add(2 * time.Second), After: WaitSoon})
			})
			release := r.Hold(Wait{Stage: "a", Calls: 2, Why: "500", Since: begun, After: WaitSoon})
			time.Sleep(6 * time.Second)
			forget()
			time.Sleep(30 * time.Second)
			release()
		}, []string{"5 waiting for a: 5 calls, 429", "35 waiting for a: 2 calls, 500"}},
		"closed and opened": {func(r *WaitReporter) {
			defer r.Hold(Wait{Stage: "a", Why: "it is slow", Since: time.Now(), After: WaitSoon})()
			r.Close()
			time.Sleep(20 * time.Second)
			r.Open()
			time.Sleep(20 * time.Second)
		}, []string{"20 waiting for a: it is slow"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, got := time.Now(), []string(nil)
				r := NewWaitReporter(func(w LongWait) { got = append(got, fmt.Sprintf("%d %s", time.Since(start)/time.Second, w)) })
				defer r.Close()
				test.do(r)
				synctest.Wait()
				if d := cmp.Diff(test.want, got); d != "" {
					t.Errorf("reported (-want +got):\n%s", d)
				}
			})
		})
	}
}

// TestNobodyListens: a nil Reporter does nothing.
func TestNobodyListens(t *testing.T) {
	r := NewWaitReporter(nil)
	r.Open()
	r.Answered("a")
	r.Watch(nil)()
	r.Hold(Wait{})()
	r.Close()
}
