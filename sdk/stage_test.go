package sdk_test

import (
	"context"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func TestContext(t *testing.T) {
	tests := []struct {
		name           string
		placing, terms []string
		want           string
		before         string
		behind         []string
	}{
		{name: "nothing"},
		{name: "blanks", placing: []string{" \n"}, terms: []string{"", "\t"}},
		{name: "placed", placing: []string{"guide / Set-up", "It is about\n ports."}, want: "guide / Set-up\nIt is about ports.", before: "guide / Set-up\nIt is about ports."},
		{name: "terms", terms: []string{"port", "which port?"}, want: "---\nport\nwhich port?", behind: []string{"port", "which port?"}},
		{name: "both", placing: []string{"guide"}, terms: []string{"a  b"}, want: "guide\n---\na b", before: "guide", behind: []string{"a b"}},
		{name: "delimiters inside", placing: []string{"---", "a --- b", "a\n---\nb"}, terms: []string{"---", "c"}, want: "a --- b\na --- b\n---\nc", before: "a --- b\na --- b", behind: []string{"c"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sdk.JoinContext(test.placing, test.terms)
			if got != test.want {
				t.Errorf("joined %q, want %q", got, test.want)
			}
			before, behind := sdk.SplitContext(got)
			if before != test.before || !slices.Equal(behind, test.behind) {
				t.Errorf("split into %q and %q", before, behind)
			}
		})
	}
}

func FuzzContext(f *testing.F) {
	f.Add("a\n---", "---\nb")
	f.Fuzz(func(t *testing.T, a, b string) {
		joined := sdk.JoinContext([]string{a}, []string{b})
		before, behind := sdk.SplitContext(joined)
		if again := sdk.JoinContext([]string{before}, behind); again != joined {
			t.Errorf("%q, then %q", joined, again)
		}
	})
}

type printed struct {
	sdk.Elector
	print string
}

func (p printed) Fingerprint() string { return p.print }

func TestFingerprint(t *testing.T) {
	at := func(options ...sdk.Option) sdk.Stage {
		return sdk.ElectStage("e", "", func(context.Context, sdk.Setup, struct{}) (sdk.Elector, error) { return nil, nil }, options...)
	}
	for want, got := range map[string]string{
		"":        at().Fingerprint(struct{}{}),
		"2":       at(sdk.Revision("2")).Fingerprint(struct{}{}),
		"model":   at().Fingerprint(printed{print: "model"}),
		"2 model": at(sdk.Revision("2")).Fingerprint(printed{print: "model"}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
