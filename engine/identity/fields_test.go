package identity

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/racflow/racflow/engine/pipeline"
)

// undecided names the fields, in a struct and in all that can be reached from it
// through fields that are in, of which nobody said whether results depend on them, or
// that are in and have no digest.
func undecided(root reflect.Type) []string {
	var all []string
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type, at string, whole bool)
	visit = func(t reflect.Type, at string, whole bool) {
		switch {
		case t.Implements(expressionType), t == rawType:
			return
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
			visit(t.Elem(), at, whole)
			return
		case t.Kind() != reflect.Struct:
			if !slices.Contains([]reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64}, t.Kind()) {
				all = append(all, at+" has no digest")
			}
			return
		case seen[t]:
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			tag, ok := tagOf(f)
			name := fmt.Sprintf("%s.%s", t, f.Name)
			switch {
			case whole && f.IsExported():
				visit(f.Type, name, true)
			case !ok || tag.reason == "" && !f.IsExported():
				all = append(all, name)
			case tag.reason == "":
				visit(f.Type, name, tag.whole)
			}
		}
	}
	visit(root, root.String(), false)
	return all
}

func TestEveryFieldIsDecidedOn(t *testing.T) {
	for _, root := range []reflect.Type{reflect.TypeFor[pipeline.Pipeline](), reflect.TypeFor[pipeline.Knowledge]()} {
		for _, field := range undecided(root) {
			t.Errorf("%s: say by an identity tag whether results depend on it; see package identity", field)
		}
	}
}

type inner struct {
	In, New string
}

type fake struct {
	In         string          `identity:"run"`
	Raw        json.RawMessage `identity:"run"`
	Out        func()          `identity:"-,a function"`
	New        int
	Reasonless int      `identity:"-,"`
	Misspelt   int      `identity:"runs"`
	hidden     int      `identity:"run"`
	Function   func()   `identity:"run"`
	Several    []*inner `identity:"run"`
	Whole      wrapped  `identity:"run,whole"`
	Again      *fake    `identity:"run"`
}

type wrapped struct {
	A []string
	B map[string]int
	c chan int
}

// What the test above finds in a struct whose author forgot to decide.
func TestUndecided(t *testing.T) {
	_ = fake{hidden: 0, Whole: wrapped{c: nil}}
	want := []string{
		"identity.fake.New", "identity.fake.Reasonless", "identity.fake.Misspelt", "identity.fake.hidden", "identity.fake.Function has no digest",
		"identity.inner.In", "identity.inner.New", "identity.wrapped.B has no digest", "identity.wrapped.c",
	}
	if diff := cmp.Diff(want, undecided(reflect.TypeFor[fake]())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A field that nobody decided on is no field that does not count.
func TestReaderRefusesWhatIsUndecided(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an undecided field was read over")
		}
	}()
	newReader("run").value(&inner{})
}
