package confident

import (
	"fmt"
	"slices"
	"testing"
)

func rows(all ...any) (rows []Row) {
	for i := 0; i < len(all); i += 2 {
		rows = append(rows, Row{Text: fmt.Sprint(i / 2), Label: all[i].(string), Votes: all[i+1].(map[string]float64)})
	}
	return rows
}

type votes = map[string]float64

func TestSuspects(t *testing.T) {
	right := []any{"a", votes{"a": .9, "b": .1}, "a", votes{"a": .8, "b": .2}, "b", votes{"b": .9, "a": .1}, "b", votes{"b": .8, "a": .2}}
	for _, c := range []struct {
		name string
		rows []Row
		want []Suspect
	}{
		{"none", nil, nil},
		{"all right", rows(right...), nil},
		{"one that is wrong for certain", rows(append(right, "a", votes{"b": .95, "a": .01})...), []Suspect{{Row: 4, Label: "b", Share: .95, Self: .01, Relabel: true}}},
		{"one that is wrong and not certain", rows(append(right, "a", votes{"b": .87, "a": .1})...), []Suspect{{Row: 4, Label: "b", Share: .87, Self: .1}}},
		{"another label is likelier, and below its threshold", rows(append(right, "a", votes{"b": .5, "a": .4, "c": .1})...), nil},
		{"without votes", rows(append(right, "a", votes{})...), nil},
		{"the least likely first", rows(append(right, "a", votes{"b": .9, "a": .1}, "a", votes{"b": .8, "a": .05}, "b", votes{"a": .9, "b": 0})...),
			[]Suspect{{Row: 6, Label: "a", Share: .9, Self: 0, Relabel: true}, {Row: 5, Label: "b", Share: .8, Self: .05}, {Row: 4, Label: "b", Share: .9, Self: .1}}},
		{"a label that no row has", rows(append(right, "a", votes{"z": .9, "b": .1})...), nil},
	} {
		if got := Suspects(c.rows); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
