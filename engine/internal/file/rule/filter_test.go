package rule

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func compileFilter(t testing.TB, text string) *Filter {
	t.Helper()
	f, diags := CompileFilter(everything(), plain(text))
	if diags.HasErrors() {
		t.Fatalf("%s: %v", text, diags)
	}
	return f
}

// ofItem is what a filter sees of an item with this metadata.
func ofItem(meta sdk.Meta) *Env {
	return &Env{Item: sdk.Item{ID: "faq-7", Text: "wo ist mein Paket?", Meta: meta}}
}

func TestFilter(t *testing.T) {
	item := sdk.Meta{"lang": "de", "tenant": "acme", "age": 3.0, "vip": true}
	tests := []struct{ filter, want string }{
		{`meta.lang == 'en' and label not in ['oos'] and meta.year >= 2020`,
			`(meta["lang"] == "en" and not (label == "oos") and meta["year"] >= 2020)`},
		{`meta.tenant == item.meta.tenant`, `meta["tenant"] == "acme"`},
		{`label in var.names or id startsWith 'faq-'`, `(label in ["a", "b"] or id startsWith "faq-")`},
		{`meta["any key"] != "x"`, `not (meta["any key"] == "x")`},
		{`meta[var.lang] == 1`, `meta["de"] == 1`},
		{`meta?.lang == var.lang`, `meta["lang"] == "de"`},
		{`'en' == meta.lang && 2020 <= meta.year`, `(meta["lang"] == "en" and meta["year"] >= 2020)`},
		{`1.5 > meta.x || 2 < meta.x || 3 >= meta.x`, `(meta["x"] < 1.5 or meta["x"] > 2 or meta["x"] <= 3)`},
		{`2010 <= meta.year < 2020`, `(meta["year"] >= 2010 and meta["year"] < 2020)`},
		{`meta.public and not meta.draft`, `(meta["public"] == true and not (meta["draft"] == true))`},
		{`meta.public`, `meta["public"] == true`},
		{`id not startsWith 'faq-'`, `not (id startsWith "faq-")`},
		{`id != item.id`, `not (id == "faq-7")`},
		{`meta.opening == item.text[0:6]`, `meta["opening"] == "wo ist"`},
		{`meta.lang == (item.meta.language ?? "en")`, `meta["lang"] == "en"`},
		{`label in [upper(item.meta.lang), "x"]`, `label in ["DE", "x"]`},
		{`meta.age > item.meta.age + 1`, `meta["age"] > 4`},
		{`meta.public or item.meta.vip`, `true`},
		{`(label == 'a' or item.meta.age > 5) and label != 'b'`, `(label == "a" and not (label == "b"))`},
		{`item.meta.age < 5 and label == 'a'`, `label == "a"`},
		{`label == 'a' and not item.meta.vip`, `false`},
		{`var.on or label == 'a'`, `true`},
		{`var.on and label == 'a'`, `label == "a"`},
		{`not not (label == 'a')`, `label == "a"`},
		{`not (label == 'a' or not (label == 'b'))`, `not ((label == "a" or not (label == "b")))`},
		{`label == 'a' or (label == 'b' or (label == 'c' or false))`, `(label == "a" or label == "b" or label == "c")`},
		{`label in []`, `false`},
		{`label not in []`, `true`},
		{`true`, `true`},
		{`false`, `false`},
		{`label in filter(["a", "b"], # > "a")`, `label == "b"`},
		{`meta.n in [1, 2.5, "x", true]`, `meta["n"] in [1, 2.5, "x", true]`},
		// Missing metadata of the item selects nothing, also under a not.
		{`meta.x == item.meta.missing`, `false`},
		{`meta.x != item.meta.missing`, `false`},
		{`not (meta.x == item.meta.missing)`, `false`},
		{`not (meta.x < item.meta.missing or label == 'a')`, `false`},
		{`meta.x in [item.meta.missing, 'a']`, `meta["x"] == "a"`},
		{`meta.x not in [item.meta.missing, 'a']`, `false`},
		{`meta.x in item.meta.missing`, `false`},
		{`meta.x not in item.meta.missing`, `false`},
		{`label == 'a' or item.meta.missing`, `label == "a"`},
		{`label == 'a' and not item.meta.missing`, `false`},
		// Operands after a decisive operand are not evaluated.
		{`label == 'a' and item.meta.missing != nil and item.meta.missing > 3`, `false`},
		{`item.meta.missing == nil or meta.x > item.meta.missing + 1`, `true`},
	}
	entry := &sdk.Candidate{ID: "faq-1", Label: "a", Meta: sdk.Meta{
		"lang": "en", "tenant": "acme", "year": 2020.0, "x": 2.0, "public": true, "draft": false, "age": 9.0, "n": 2.5, "de": 1.0,
	}}
	for _, tt := range tests {
		f := compileFilter(t, tt.filter)
		env := ofItem(item)
		got, err := f.Bind(context.Background(), env)
		if err != nil || got.String() != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.filter, got, err, tt.want)
			continue
		}
		if tt.want == "true" && got != nil {
			t.Errorf("%s: it is no nil, which costs nothing", tt.filter)
		}
		if got != nil && got.Check() != nil {
			t.Errorf("%s: %v", tt.filter, got.Check())
		}
		// A keep rule with the same text gives the same result, if nothing is missing.
		if strings.Contains(tt.filter, "missing") {
			continue
		}
		keep, diags := Compile(Keep, everything(), plain(tt.filter))
		if diags.HasErrors() {
			t.Errorf("%s: %v", tt.filter, diags)
			continue
		}
		env.Candidate = entry
		want, err := keep.Eval(context.Background(), env)
		if match := got.Match(entry.ID, entry.Label, entry.Meta); err == nil && match != want {
			t.Errorf("%s: the filter gives %v, keep %v", tt.filter, match, want)
		}
	}
}

func TestFilterFaults(t *testing.T) {
	tests := []struct{ filter, at, want string }{
		{`lower(label) == 'x'`, `lower`, `A filter compares id, label or meta.KEY, as they are`},
		{`meta.a + 1 > 3`, `+`, `as they are`},
		{`meta.a == meta.b`, `==`, `cannot compare an entry with itself`},
		{`label matches "^a"`, `matches`, `A filter has no "matches" for the fields of an entry`},
		{`label contains item.text`, `contains`, `narrowed further by keep`},
		{`id endsWith "x" and label == 'x'`, `endsWith`, `has no "endsWith"`},
		{`meta.a ?? true`, `??`, `has no "??"`},
		{`(meta.a ?? 1) == 1`, `??`, `as they are`},
		{`any(["a"], # == label)`, `any`, `as they are`},
		{`label == 'x' ? meta.a : meta.b`, ``, `as they are`},
		{`let l = label; l == 'x'`, ``, `as they are`},
		{`(label == 'a') == (meta.b == 1)`, `==`, `with itself`},
		{`(label == 'a') == true`, `==`, `as they are`},
		{`label[0:1] == 'a'`, `[`, `as they are`},
		{`'a' in meta.tags`, `in`, `stands on the left of in`},
		{`'faq-1' startsWith id`, `startsWith`, `stands on the left of startsWith`},
		{`'lang' in meta`, `in`, `stands on the left of in`},
		{`meta == 'x'`, `==`, `mismatched types`},
		{`meta in ['x']`, `in`, `Cannot use a map`},
		{`label == 'x' and meta[item.id]`, `[`, `Write the key of the metadata out`},
		{`meta.a.b == 1`, `b`, `which have no parts`},
		{`meta.a == nil`, `nil`, `cannot ask for what is missing`},
		{`nil != meta.a`, `nil`, `cannot ask for what is missing`},
		{`meta.a < [1]`, `<`, `mismatched types`},
		{`meta.a == ['x']`, `['x']`, `for one of several, write in`},
		{`meta.a >= true`, `>=`, `mismatched types`},
		{`meta.a startsWith 5`, `startsWith`, `mismatched types`},
		{`meta.a >= first([true, 1])`, `first`, `A filter's >= does not go with true`},
		{`meta.a in 'abc'`, `'abc'`, `The right side of in is a list, not "abc"`},
		{`id in ['a', 5]`, `['a'`, `A filter compares the id with 5: it is a string`},
		{`label == 5`, `==`, `mismatched types`},
		{`label`, `label`, `A rule is true or false`},
		{`label and meta.a`, `and`, `mismatched types`},
		{`meta.a > 1 % 0`, `%`, `Integer divide by zero`},
		{`item.meta.lang == 'en'`, `item.meta.lang`, `The filter is about the item alone`},
		{`text == 'x'`, `text`, `a rule in this place sees var, item, id, label, meta`},
		{`label in labels`, `labels`, `Did you mean "label"?`},
		{`label in candidate_labels`, `candidate_labels`, `There is no "candidate_labels" here`},
		{`dense > 0.2`, `dense`, `There is no "dense" here`},
		{`label == var.key`, `key`, `is a secret`},
		{`meta.a in 1..5`, `..`, `cannot make a range`},
		{` `, ` `, `The rule is empty`},
		{strings.Repeat("not (label == 'a' and (label == 'b' or ", 16) + "label == 'c'" + strings.Repeat("))", 16), `not`, `more than 32 deep`},
	}
	for _, tt := range tests {
		_, diags := CompileFilter(everything(), plain(tt.filter))
		if !diags.HasErrors() {
			t.Errorf("%.60s: no fault", tt.filter)
			continue
		}
		if got := diags.Error(); !strings.Contains(got, tt.want) {
			t.Errorf("%.60s:\n got %s\nwant %s", tt.filter, got, tt.want)
		}
		from, to := diags[0].Subject.Start.Byte, min(diags[0].Subject.End.Byte, len(tt.filter))
		if got := tt.filter[min(from, to):]; !strings.HasPrefix(got, tt.at) {
			t.Errorf("%.60s: points at %q, want %q", tt.filter, got, tt.at)
		}
	}
}

func TestFilterOfTexts(t *testing.T) {
	for filter, want := range map[string]int{
		`meta.year >= 2020`: 1, `meta.public and not meta.draft`: 2, `meta.a in [1, 2]`: 1,
		`meta.year >= '2020'`: 0, `meta.a in [1, 'x']`: 0, `label == 'x'`: 0, `meta.a == item.meta.n`: 0, `meta.a in []`: 0,
	} {
		scope := everything()
		scope.Texts = true
		f, diags := CompileFilter(scope, plain(filter))
		if len(diags) != want || diags.HasErrors() || f == nil {
			t.Errorf("%s: got %v, want %d warnings", filter, diags, want)
		}
		if f, diags = CompileFilter(everything(), plain(filter)); len(diags) > 0 || f == nil {
			t.Errorf("%s: got %v where metadata have types", filter, diags)
		}
	}
}

func TestAllFaultsOfAFilterAtOnce(t *testing.T) {
	_, diags := CompileFilter(everything(), plain(`label matches "a" and meta.a == nil or meta.b == meta.c`))
	if len(diags) != 3 {
		t.Errorf("got %v, want three faults", diags)
	}
}

func TestFilterOfItems(t *testing.T) {
	for filter, want := range map[string]string{
		`label == item.meta.age`:        `compares the label with 3: it is a string`,
		`meta.a < item.meta.vip`:        `< does not go with true`,
		`meta.a in item.meta.lang`:      `the right side of in is a list, not "de"`,
		`label == 'x' or item.meta.age`: `it gives a float64 where true or false is needed`,
		`meta.a > item.meta.lang + 1`:   `invalid operation`,
		`meta.a < item.meta.age % 0`:    ``,
		`meta.a < 0.0 * item.meta.inf`:  `NaN`,
		`meta.a == item.meta`:           `a field is a text, a number or a bool`,
	} {
		f := compileFilter(t, filter)
		env := ofItem(sdk.Meta{"lang": "de", "age": 3.0, "vip": true, "inf": inf()})
		if got, err := f.Bind(context.Background(), env); err == nil || !strings.HasPrefix(err.Error(), `rule "`+filter+`": `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %s", filter, got, err, want)
		}
	}
}

func inf() float64 {
	var zero float64
	return 1 / zero
}

func TestFilterIsBoundOnce(t *testing.T) {
	f := compileFilter(t, `label in var.names and meta.lang == var.lang`)
	one, err := f.Bind(context.Background(), ofItem(nil))
	other, otherErr := f.Bind(context.Background(), ofItem(sdk.Meta{"lang": "x"}))
	must.Equal(t, "it is bound, to the same for both items, errors, and it reads the item", []any{true, true, nil, nil, false}, []any{one != nil, one == other, err, otherErr, f.Reads("item")})
	if f = compileFilter(t, `id != item.id`); !f.Reads("item") || !f.Reads("id") || f.Reads("meta") || f.Text() != `id != item.id` {
		t.Error("what it reads, or its text, is wrong")
	}
	var none *Filter
	if got, err := none.Bind(context.Background(), ofItem(nil)); got != nil || err != nil || none.Reads("item") {
		t.Errorf("no filter gives %v, %v", got, err)
	}
}

func TestBindConcurrently(t *testing.T) {
	f := compileFilter(t, `meta.tenant == item.meta.tenant and label != 'oos'`)
	var wg sync.WaitGroup
	for _, tenant := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range 200 {
				got, err := f.Bind(context.Background(), ofItem(sdk.Meta{"tenant": tenant}))
				if err != nil || got.Parts[0].Values[0] != tenant {
					t.Errorf("%s: %v, %v", tenant, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestBindIsBounded(t *testing.T) {
	ten := `["1","2","3","4","5","6","7","8","9","0"]`
	loop := "count(" + strings.Repeat("filter("+ten+", any(", 8) + "[1], # > 0" + strings.Repeat("))", 8) + ")"
	nested := strings.Repeat("count("+ten+", ", 9) + "true" + strings.Repeat(" > 0)", 9)
	for _, filter := range []string{
		`meta.a == ` + loop, `meta.a == ` + nested, `meta.a == item.meta.n + ` + nested,
		`meta.a == 1 or meta.b == item.meta.n + ` + nested + ` or meta.c == item.meta.n + ` + nested,
	} {
		t.Logf("%.60s", filter)
		quick(t, 10*maxTime, func() {
			f, diags := CompileFilter(everything(), plain(filter))
			if !diags.HasErrors() {
				_, err := f.Bind(context.Background(), ofItem(sdk.Meta{"n": 1.0}))
				t.Log(err)
			}
		})
	}
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`meta.lang == 'en' and label not in ['oos'] and meta.year >= 2020`, `meta.tenant != item.meta.tenant`,
		`label in var.names or id startsWith 'faq-'`, `not meta["a b"] && 1 <= meta.x < item.meta.age`, `meta?.x in [item.id, nil, 1]`,
		`lower(label) == 'x'`, `meta.a.b ?? meta`, `true ? label : id`, `let x = 1; meta.x == x`, `any(['a'], # == label)`,
	} {
		f.Add(seed)
	}
	env := ofItem(sdk.Meta{"lang": "de", "age": 3.0, "vip": true})
	f.Fuzz(func(t *testing.T, text string) {
		quick(t, time.Second, func() {
			filter, diags := CompileFilter(everything(), plain(text))
			if !diags.HasErrors() {
				if bound, err := filter.Bind(context.Background(), env); err == nil && bound != nil {
					if err := bound.Check(); err != nil {
						t.Errorf("%q gave a filter that is none: %v", text, err)
					}
					bound.Match("id", "label", sdk.Meta{"x": 1.0})
				}
			}
		})
	})
}
