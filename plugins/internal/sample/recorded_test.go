package sample_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/plugins/internal/sample"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

// written returns a config that names a file with this content.
func written(t *testing.T, name, content, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return `{"path": ` + strconv.Quote(path) + more + `}`
}

func openRecorded(t *testing.T, config string) (sdk.Sampler, error) {
	t.Helper()
	stage, err := sample.Recorded().Open(t.Context(), sdk.Setup{Block: "ann", Samples: 1}, []byte(config))
	if err != nil {
		return nil, err
	}
	return stage.(sdk.Sampler), nil
}

// one makes a sample of labels and weights.
func one(labelsAndWeights ...any) sdk.Sample {
	var s sdk.Sample
	for i := 0; i < len(labelsAndWeights); i += 2 {
		s.Answers = append(s.Answers, sdk.Answer{Label: labelsAndWeights[i].(string), Weight: labelsAndWeights[i+1].(float64)})
	}
	return s
}

func TestSample(t *testing.T) {
	const many = "id\tvoter\tanswer\n1\tann\tcard_lost\n2\tbob\tweather\n1\tbob\tweather\n3\tann\t\n1\tann\tpin\n1\tann\tcard_lost\n"
	const result = `{"id": "1", "text": "hm", "answer": "a", "agreement": 0.5, "votes": [` +
		`{"voter": "knn", "answer": "a", "weight": 0.75, "accepted": true}, {"voter": "knn", "answer": "b", "weight": 0.25, "accepted": true}, ` +
		`{"voter": "ann", "answer": "b", "weight": 1, "accepted": true}, {"voter": "ann", "answer": "", "weight": 1, "accepted": true}, ` +
		`{"voter": "ann", "answer": "", "weight": 1, "accepted": false}]}` + "\n" + `{"id": "2", "answer": null, "votes": []}`
	tests := []struct {
		name, file, content, more string
		want                      map[string][]sdk.Sample
	}{
		{
			"the block's voter", "a.tsv", many, "",
			map[string][]sdk.Sample{"1": {one("card_lost", 1.), one("pin", 1.), one("card_lost", 1.)}, "2": nil, "3": nil, "4": nil},
		},
		{"another voter", "a.tsv", many, `, "voter": "bob"`, map[string][]sdk.Sample{"1": {one("weather", 1.)}, "2": {one("weather", 1.)}}},
		{"no column of voters", "a.txt", "answer\tid\tby\r\n x \t1\tme\r\n\r\ny\t2\tme", "", map[string][]sdk.Sample{"1": {one("x", 1.)}, "2": {one("y", 1.)}}},
		{"another column, and a byte order mark", "a.tsv", "\ufeffid\tlabel\n1\tx\n", `, "column": "label"`, map[string][]sdk.Sample{"1": {one("x", 1.)}}},
		{
			"a distribution", "a.tsv", "id\tanswer\tweight\n1\ta\t0.5\n1\tb\t3\n1\ta\t0.5\n2\ta\t0\n3\ta\t\n3\tb\t1\n", "",
			map[string][]sdk.Sample{"1": {one("b", .75, "a", .25)}, "2": nil, "3": {one("a", 1.), one("b", 1.)}},
		},
		{"none of the labels", "a.tsv", "id\tanswer\n1\toos\n2\ta\n", `, "none": "oos"`, map[string][]sdk.Sample{"1": {one("", 1.)}, "2": {one("a", 1.)}}},
		{
			"objects", "a.jsonl", `{"id": 1, "voter": "ann", "answer": "a", "weight": 2}` + "\n\n" + `{"id": "2", "answer": "b", "note": [1]}` + "\n" + `{"id": "3", "answer": null}`, "",
			map[string][]sdk.Sample{"1": {one("a", 1.)}, "2": {one("b", 1.)}, "3": nil},
		},
		{"joined files with a byte order mark", "a.jsonl", "\ufeff" + `{"id": 1, "answer": "a"}` + "\r\n\ufeff" + `{"id": 2, "answer": "b"}`, "", map[string][]sdk.Sample{"1": {one("a", 1.)}, "2": {one("b", 1.)}}},
		{"results of a run", "run.jsonl", result, "", map[string][]sdk.Sample{"1": {one("b", 1.), one("", 1.)}, "2": nil}},
		{"a distribution of a run", "run.ndjson", result, `, "voter": "knn"`, map[string][]sdk.Sample{"1": {one("a", .75, "b", .25)}}},
		{"an answer to nothing", "a.tsv", "id\tanswer\n", "", map[string][]sdk.Sample{"1": nil}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := openRecorded(t, written(t, test.file, test.content, test.more))
			if err != nil {
				t.Fatal(err)
			}
			var b sdk.Batch
			var want [][]sdk.Sample
			for id, samples := range test.want {
				b.Items = append(b.Items, sdk.Item{ID: id})
				want = append(want, samples)
			}
			got, err := s.Sample(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An item that is asked about again gets the answers that it has not had.
func TestAskedAgain(t *testing.T) {
	s, err := openRecorded(t, written(t, "a.tsv", "id\tanswer\n1\ta\n1\tb\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	for drawn, want := range []int{2, 1, 0, 0} {
		got, err := s.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{ID: "1", Drawn: drawn}}})
		if err != nil || len(got[0]) != want {
			t.Errorf("after %d samples it gives %v, %v", drawn, got, err)
		}
	}
}

// If no requested id is in the file, this is reported.
func TestOtherIDs(t *testing.T) {
	for ids, warns := range map[string]bool{"": false, "1 9": false, "8 9": true} {
		var out strings.Builder
		setup := sdk.Setup{Block: "ann", Samples: 1, Log: slog.New(slog.NewTextHandler(&out, nil))}
		stage, err := sample.Recorded().Open(t.Context(), setup, []byte(written(t, "a.tsv", "id\tanswer\n1\ta\n2\tb\n", "")))
		if err != nil {
			t.Fatal(err)
		}
		var b sdk.Batch
		for _, id := range strings.Fields(ids) {
			b.Items = append(b.Items, sdk.Item{ID: id})
		}
		if _, err := stage.(sdk.Sampler).Sample(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := stage.(io.Closer).Close(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "input=8 file=1") != warns || !warns && got != "" {
			t.Errorf("items %q: it warns %q", ids, got)
		}
	}
}

func TestBadFiles(t *testing.T) {
	tests := []struct {
		name, file, content, more string
		want                      []string
	}{
		{"empty", "a.tsv", "", "", []string{"is empty"}},
		{"no header", "a.tsv", "1\tcard_lost\n", "", []string{":1: ", `no column "id"`, `"card_lost"`}},
		{"no answers", "a.tsv", "id\tlabel\n", "", []string{":1: ", `no column "answer"`, "column ="}},
		{"two columns of a name", "a.tsv", "id\tanswer\tid\n", "", []string{`two columns are named "id"`}},
		{
			"rows", "a.tsv", "id\tanswer\tweight\n1\ta\t1\n\n2\ta\n\ta\t1\n3\ta\theavy\n4\ta\t-1\n5\t\xff\t1\n", "",
			[]string{":4: it has 2 fields where the header has 3", ":5: it has no id", `:6: the weight "heavy"`, `:7: the weight "-1"`, ":8: it is not UTF-8"},
		},
		{
			"objects", "a.jsonl", `{"id": "1", "answer": "a"}` + "\nnull\n[]\n" + `{"id": [], "answer": "a"}` + "\n" + `{"id": "1", "label": "a"}` + "\n" +
				`{"id": "1", "votes": 3}` + "\n" + `{"id": "1", "answer": true}`, "",
			[]string{":2: it is not a JSON object", ":3: it is not a JSON object", `:4: "id" is neither`, `:5: there is no "answer"`, `:6: "votes" is not a list`, `:7: "answer" is neither`},
		},
		{"another's answers", "a.tsv", "id\tvoter\tanswer\n1\tbob\ta\n1\tcy\tb\n", "", []string{`no answer of a voter "ann"`, `"bob", "cy"`}},
		{"CSV", "a.csv", "id,answer\n", "", []string{"TSV or JSONL"}},
		{"a long line", "a.tsv", "id\tanswer\n1\ta\n2\t" + strings.Repeat("x", 9<<20), "", []string{":3: the line is longer"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := openRecorded(t, written(t, test.file, test.content, test.more))
			if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "path" {
				t.Fatalf("error %v, want one about path", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
	t.Run("a missing file", func(t *testing.T) {
		if _, err := openRecorded(t, `{"path": "/does/not/exist.tsv"}`); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	})
}

func TestFingerprintFollowsTheFile(t *testing.T) {
	fingerprint := func(content string) string {
		s, err := openRecorded(t, written(t, "a.tsv", content, ""))
		if err != nil {
			t.Fatal(err)
		}
		return s.(sdk.Fingerprinter).Fingerprint()
	}
	if one := fingerprint("id\tanswer\n1\ta\n"); one != fingerprint("id\tanswer\n1\ta\n") || one == fingerprint("id\tanswer\n1\tb\n") {
		t.Error("the fingerprint must be that of the content")
	}
}

func TestRecordedConformance(t *testing.T) {
	var content strings.Builder
	content.WriteString("id\tanswer\tweight\n")
	for i := range 9 {
		fmt.Fprintf(&content, "item-%d\tweather\t.75\nitem-%d\tpin_change\t.25\n", i, i)
	}
	sdktest.Stage(t, sample.Recorded(), written(t, "a.tsv", content.String(), ""))
}
