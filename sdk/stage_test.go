package sdk_test

import (
	"context"
	"testing"

	"github.com/racflow/racflow/sdk"
)

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
