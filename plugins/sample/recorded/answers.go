package recorded

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// maxAnswers bounds the memory of the stage's process.
const maxAnswers = 5_000_000

// answers are those of one voter, by item. Each label is stored once.
type answers struct {
	items  map[string]span
	all    []entry
	labels []string
	number map[string]int32 // of a label
}

// span is the first and the last of an item's answers.
type span struct{ first, last int32 }

type entry struct {
	weight float64
	label  int32
	next   int32 // of the same item; 0: none
}

func (a *answers) add(id, label string, weight float64) error {
	if len(a.all) == maxAnswers {
		return fmt.Errorf("it has more than %d answers of one voter; split it, and the input with it", maxAnswers)
	}
	if a.items == nil {
		a.items, a.number = map[string]span{}, map[string]int32{}
	}
	n, ok := a.number[label]
	if !ok {
		n = int32(len(a.labels))
		label = strings.Clone(label) // it is part of a line
		a.number[label] = n
		a.labels = append(a.labels, label)
	}
	at := int32(len(a.all))
	a.all = append(a.all, entry{weight: weight, label: n})
	s, ok := a.items[id]
	if ok {
		a.all[s.last].next = at
	} else {
		s.first, id = at, strings.Clone(id)
	}
	s.last = at
	a.items[id] = s
	return nil
}

// of returns an item's answers in the order of the file.
func (a *answers) of(id string) []sdk.Answer {
	s, ok := a.items[id]
	if !ok {
		return nil
	}
	var list []sdk.Answer
	for at := s.first; ; at = a.all[at].next {
		list = append(list, sdk.Answer{Label: a.labels[a.all[at].label], Weight: a.all[at].weight})
		if at == s.last {
			return list
		}
	}
}
