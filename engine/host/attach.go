package host

import (
	"context"
	"errors"

	"github.com/racflow/racflow/sdk"
)

// Attach is that of sdk.Attacher. It returns a *ConfigError where what the stage found does not fit
// its config.
func (p *Process) Attach(ctx context.Context) (sdk.Attached, error) {
	found, err := p.Stage.Attach(ctx)
	if wrong := new(sdk.ArgumentError); errors.As(err, &wrong) {
		return found, &ConfigError{Kind: p.spec.Kind, Block: p.spec.Block, Errors: []*sdk.ArgumentError{wrong}}
	}
	return found, err
}
