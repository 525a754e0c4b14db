package rule

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestBombs checks that hostile rules are refused or end in time. Without the bounds, each would
// run for minutes or exhaust the memory.
func TestBombs(t *testing.T) {
	deep := func(depth int, inner string) string {
		return strings.Repeat("all(candidates, ", depth) + inner + strings.Repeat(")", depth)
	}
	long := sample()
	long.Item.Text = strings.Repeat("a", 1<<20)
	doubling := `len(` + strings.Repeat("map(", 40) + `["x"]` + strings.Repeat(", # + #)", 40) + `) == 1`
	lets := `let a0 = item.text + item.text; `
	for i := range 40 {
		lets += fmt.Sprintf("let a%d = a%d + a%d; ", i+1, i, i)
	}
	tests := map[string]string{
		"nested loops":    deep(8, "true"),
		"deeper":          deep(100, ".score > -1"),
		"doubling text":   doubling,
		"doubling lets":   lets + ` a40 == ""`,
		"large pattern":   `item.text matches "(a?){900}a{900}b"`,
		"huge repeat":     `item.text matches "((a{100}){10}){10}"`,
		"huge lists":      `len(map(candidates, len(map(candidates, len(map(candidates, len(map(candidates, 1))))))))  > 0`,
		"nested ternary":  strings.Repeat("true ? (", 400) + "true" + strings.Repeat(") : false", 400),
		"many brackets":   strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000),
		"many nots":       strings.Repeat("!", 4000) + "true",
		"open brackets":   strings.Repeat("[", 4000),
		"list of lists":   `let a = [1,1]; let b = [a,a]; let c = [b,b]; c == c`,
		"nested in lists": `let a = true ? 1 : [1,1]; let b = [a,a]; b == b`,
	}
	for name, rule := range tests {
		t.Run(name, func(t *testing.T) {
			quick(t, 10*maxTime, func() {
				r, diags := Compile(When, everything(), plain(rule))
				if !diags.HasErrors() {
					holds, err := r.Eval(context.Background(), long)
					t.Log(holds, err)
				}
			})
		})
	}
}

// quick fails a test if something repeatedly takes longer than a limit. It may take longer once,
// since the machine is also busy with other things.
func quick(t *testing.T, limit time.Duration, do func()) {
	t.Helper()
	var spent time.Duration
	for range 5 {
		start := time.Now()
		do()
		if spent = time.Since(start); spent <= limit {
			return
		}
	}
	t.Errorf("it took %v, five times in a row more than %v", spent, limit)
}

func TestEvalStopsWithItsContext(t *testing.T) {
	r, diags := Compile(When, everything(), plain(`all(candidates, all(candidates, .score > -1))`))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Eval(ctx, sample()); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("got %v", err)
	}
}

func FuzzRule(f *testing.F) {
	for _, seed := range []string{
		`margin < 0.12`, `all(candidates, any(votes, .answer == #.answer))`, `item.text matches "^a+$"`,
		`answer in labels ? true : let x = 1; x > 2`, `candidates[1:2] | count() > 1`, "a\x00é \\\"", `map(map(["x"], # + #), # + #) == []`,
	} {
		for kind := When; kind <= Fallback; kind++ {
			f.Add(uint8(kind), seed)
		}
	}
	for _, seed := range []string{`low(accuracy) >= 0.9 and recall("x") < 1`, `found("q", "p", 3)`, `answer("x") == "y"`} {
		f.Add(uint8(5), seed)
	}
	env := sample()
	f.Fuzz(func(t *testing.T, kind uint8, text string) {
		quick(t, time.Second, func() {
			which := Kind(kind%6 + 1)
			if which > Fallback {
				which = Expectation
			}
			r, diags := Compile(which, pipelineScope(), plain(text))
			if !diags.HasErrors() {
				_, _ = r.Eval(context.Background(), env)
			}
		})
	})
}
