package promise

import (
	"fmt"
	"strings"
	"testing"
)

// answers are rows with falling confidences, of which those at some positions are wrong.
func answers(n int, wrong ...int) []Item {
	rows := make([]Item, n)
	for i := range rows {
		rows[i] = Item{Text: fmt.Sprint(i), Confidence: 1 - float64(i)/float64(n), Answered: true, Right: true}
	}
	for _, i := range wrong {
		rows[i].Right = false
	}
	return rows
}

func repeat(rows []Item, times int) (all []Item) {
	for range times {
		all = append(all, rows...)
	}
	return all
}

func with(rows []Item, more ...Item) []Item { return append(rows, more...) }

func TestFind(t *testing.T) {
	tail := make([]int, 100)
	for i := range tail {
		tail[i] = 300 + i
	}
	tests := map[string]struct {
		items     []Item
		goal      Goal
		threshold float64
		answered  int
		right     int
	}{
		"no error at all":          {answers(400), Goal{.98, .95}, 0, 400, 400},
		"just enough":              {answers(149), Goal{.98, .95}, 0, 149, 149},
		"errors after the 300th":   {answers(400, tail...), Goal{.95, .95}, .231, 308, 300},
		"less confidence, more":    {answers(400, tail...), Goal{.95, .5}, .214, 315, 300},
		"copies are one row":       {repeat(answers(149), 3), Goal{.98, .95}, 0, 149, 149},
		"a wrong copy is wrong":    {with(answers(300), Item{Text: "299", Answered: true, Confidence: .001}), Goal{.98, .95}, 0, 300, 299},
		"all alike":                {sameConfidence(answers(300, 7)), Goal{.98, .95}, 0, 300, 299},
		"unanswered ones are none": {with(answers(149), Item{Text: "x"}), Goal{.98, .95}, 0, 149, 149},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Find(test.items, test.goal)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Threshold(false); got != test.threshold || p.Answered != test.answered || p.Right != test.right {
				t.Errorf("threshold %v, %d answered, %d right; want %v, %d, %d", got, p.Answered, p.Right, test.threshold, test.answered, test.right)
			}
		})
	}
}

func sameConfidence(rows []Item) []Item {
	for i := range rows {
		rows[i].Confidence = .5
	}
	return rows
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		items []Item
		goal  Goal
		want  string
	}{
		"too few":       {answers(80), Goal{.98, .95}, "0.98 with 95 % confidence needs at least 149 rows without an error above the threshold; there are 80"},
		"too few texts": {repeat(answers(80), 9), Goal{.98, .95}, "there are 80 (the same text counts once)"},
		"all":           {answers(1000), Goal{1, .95}, "no number of rows can show that all answers are right"},
		"more than all": {answers(1000), Goal{98, .95}, "an accuracy of 98 cannot be promised"},
		"certainty":     {answers(1000), Goal{.98, 1}, "a confidence of 1 cannot be had"},
		"rare errors": {
			answers(400, 1, 3), Goal{.98, .95},
			"no threshold shows 0.98 with 95 % confidence: of the 149 surest of 400 answers 2 are wrong, and at most 0 may be. They show no more than 0.958; if the surest err as rarely among more rows, about 6700 are enough",
		},
		"many errors":                    {answers(400, 1, 3, 5, 7, 9), Goal{.98, .95}, "5 are wrong, and at most 0 may be. They show no more than 0.930"},
		"one value with too many errors": {sameConfidence(answers(400, 1, 2, 3, 4, 5, 6, 7, 8, 9)), Goal{.98, .95}, "of the 400 surest of 400 answers 9 are wrong, and at most 3 may be"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Find(test.items, test.goal)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestThresholdIsReadable parts the answers where one would part them by hand.
func TestThresholdIsReadable(t *testing.T) {
	tests := []struct {
		least, beyond, below, inclusive float64
	}{
		{.5, .4, .45, .45},
		{.52, .38, .45, .45},
		{.7, .28, .5, .5},
		{.30000000000000004, .2, .25, .25},
		{.9995, .9991, .9993, .9993},
		{.2, -1, 0, -.01},
		{.2, 0, .1, .1},
		{.30000000000000004, .3, .30000000000000004, .3}, // neighbours: nothing is between them
	}
	for _, test := range tests {
		p := Promise{least: test.least, beyond: test.beyond}
		if below, inclusive := p.Threshold(false), p.Threshold(true); below != test.below || inclusive != test.inclusive {
			t.Errorf("%v to %v: %v and %v, want %v and %v", test.beyond, test.least, below, inclusive, test.below, test.inclusive)
		}
	}
}

// TestOutside counts what is out of scope: missed where it gets an answer from the
// threshold on, caught where it is flagged or has none.
func TestOutside(t *testing.T) {
	items := answers(400)
	for i := 300; i < 400; i++ {
		items[i].Outside, items[i].Right = true, false
	}
	items[10].Outside, items[10].Right = true, false
	for i := range 99 {
		items = append(items, Item{Text: fmt.Sprint("none ", i), Outside: true, Right: true})
	}
	p, err := Find(items, Goal{.95, .95})
	if err != nil {
		t.Fatal(err)
	}
	if p.Outside != 200 || p.Missed != 1+p.Answered-300 || p.Right != 299 || p.Caught < .89 || p.Caught > 1-float64(p.Missed)/200 {
		t.Errorf("%+v", p)
	}
}
