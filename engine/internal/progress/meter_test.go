package progress

import (
	"testing"
	"time"
)

// TestLeft reports steps at given seconds, and asks at the last of them.
func TestLeft(t *testing.T) {
	steady := func(every, done int64, n int) (all [][2]int64) {
		for i := range int64(n) {
			all = append(all, [2]int64{i * every, i * done})
		}
		return all
	}
	for name, test := range map[string]struct {
		steps [][2]int64 // second, done
		total int64
		wait  int64 // seconds since the last one
		want  time.Duration
	}{
		"steady":                     {steps: steady(1, 10, 11), total: 200, want: 10 * time.Second},
		"rounded up":                 {steps: steady(1, 10, 11), total: 1001, want: 100 * time.Second},
		"too early":                  {steps: steady(1, 10, 5), total: 200},
		"too few steps":              {steps: [][2]int64{{0, 0}, {10, 50}, {20, 60}}, total: 200},
		"slow steps":                 {steps: [][2]int64{{0, 0}, {80, 8}}, total: 32, want: 4 * time.Minute},
		"nothing done":               {steps: [][2]int64{{0, 0}, {10, 0}, {20, 0}, {30, 0}, {40, 0}}, total: 200},
		"no total":                   {steps: steady(1, 10, 11)},
		"all is done, work remains":  {steps: steady(1, 10, 11), total: 100},
		"never nothing":              {steps: steady(1, 1000, 11), total: 10_001, want: time.Second},
		"less than before":           {steps: append([][2]int64{{0, 9000}}, steady(10, 10, 31)[1:]...), total: 700, want: 400 * time.Second},
		"a fast start does not last": {steps: [][2]int64{{0, 0}, {1, 9000}, {50, 9010}, {60, 9020}, {70, 9030}, {80, 9040}, {90, 9050}, {100, 9060}}, total: 9120, want: time.Minute},
		"it stands still":            {steps: steady(1, 10, 11), total: 200, wait: 10, want: 20 * time.Second},
		"for years":                  {steps: steady(1, 1, 11), total: 1e12},
	} {
		t.Run(name, func(t *testing.T) {
			var m Meter
			start := time.Unix(0, 0)
			at := start
			for _, s := range test.steps {
				at = start.Add(time.Duration(s[0]) * time.Second)
				m.Add(at, Step{Done: s[1], Total: test.total})
			}
			got, ok := m.Left(at.Add(time.Duration(test.wait) * time.Second))
			if got != test.want || ok != (test.want > 0) {
				t.Errorf("%v, %v, want %v", got, ok, test.want)
			}
		})
	}
}

// TestMarks checks that a Meter takes bounded memory in long work, and forgets it when other work begins.
func TestMarks(t *testing.T) {
	var m Meter
	at := time.Unix(0, 0)
	for i := range int64(100_000) {
		at = at.Add(time.Second)
		m.Add(at, Step{Doing: "embedding", Done: i, Total: 110_000})
	}
	if rate, ok := m.Rate(at); !ok || rate < 0.99 || rate > 1.01 || len(m.marks) > 3 {
		t.Errorf("rate %v, %v with %d marks", rate, ok, len(m.marks))
	}
	if left, ok := m.Left(at); !ok || left < 10_000*time.Second || left > 11_000*time.Second {
		t.Errorf("%v left, %v", left, ok)
	}
	m.Add(at, Step{Doing: "answering", Done: 100_000})
	if _, ok := m.Rate(at.Add(time.Minute)); ok || len(m.marks) != 1 {
		t.Errorf("%d marks of other work", len(m.marks))
	}
}
