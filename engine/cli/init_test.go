package cli

import (
	"bufio"
	"maps"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/scaffold"
)

// What a person answers is taken, and Return takes the guess.
func TestConfirm(t *testing.T) {
	t.Chdir(folder(t, map[string]string{
		"t.csv": "nr,body,queue\n1,where is the parcel that I sent,parcel\n2,how high is the fee for a card,fee\n" +
			"3,when is the parcel here,parcel\n4,what is the fee,fee\n",
	}))
	for name, test := range map[string]struct {
		typed string
		want  map[string]string
		says  string
	}{
		"the guess":        {"\n\n\n", map[string]string{"text": "body", "label": "", "id": "nr"}, "column of the text [body]: "},
		"corrected":        {"queue\nbody\n-\n", map[string]string{"text": "queue", "label": "body", "id": ""}, ""},
		"no such column":   {"boddy\nbody\nqueue\nnr", map[string]string{"text": "body", "label": "queue", "id": "nr"}, `there is no column "boddy"`},
		"a text is needed": {"-\nbody\n\n\n", map[string]string{"text": "body", "label": "", "id": "nr"}, `there is no column "-"`},
		"the end":          {"body\n", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := scaffold.Look(t.Context(), []string{"t.csv"}, scaffold.How{})
			if err != nil {
				t.Fatal(err)
			}
			r := d.Rows[0]
			r.Mapping.ID, r.Mapping.Text, r.Mapping.Label = "nr", "body", ""
			var out strings.Builder
			got, err := confirm(&out, bufio.NewReader(strings.NewReader(test.typed)), r)
			if (err != nil) != (test.want == nil) || !maps.Equal(got, test.want) {
				t.Errorf("%v, %v, want %v", got, err, test.want)
			}
			if !strings.Contains(out.String(), test.says) {
				t.Errorf("%q is not in\n%s", test.says, out.String())
			}
		})
	}
}
