package profile

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// Config is what a Keeper needs.
type Config struct {
	Target
	Address string   // of the service
	Host    sdk.Host // which keeps the profile
	Given   Given
	Probe   bool // the model, where nothing is known of it
	// Warn reports something once for each topic.
	Warn func(topic, message string, args ...any)
}

// Keeper has the profile of one model, and keeps it in step with what calls tell. Its
// methods may be called by several goroutines.
type Keeper struct {
	config Config
	turn   chan struct{} // has an element while somebody finds the profile
	store  sync.Mutex    // held while the profile is given to the Host

	mu       sync.Mutex
	looked   bool     // the Host was asked
	failures int      // probes that failed
	served   bool     // a call was answered since
	known    *Profile // nil: nothing is known
}

// NewKeeper returns a keeper that knows nothing yet.
func NewKeeper(c Config) *Keeper { return &Keeper{config: c, turn: make(chan struct{}, 1)} }

// Endpoint is the name of the service under which the profile is kept: its address, and
// the path of completions, which may take other fields than chats.
func (k *Keeper) Endpoint() string {
	if k.config.Completion {
		return k.config.Address + "/completions"
	}
	return k.config.Address
}

// Get returns the profile before a call: the one that is kept, or else what a probe finds,
// for which all wait who ask meanwhile. Where the probe fails, the profile is what the file
// gives: the call itself tells why.
func (k *Keeper) Get(ctx context.Context) (Profile, error) {
	p, _, err := k.get(ctx, k.config.Probe)
	return p, err
}

// Kept returns the profile and whether anything is kept; it calls nobody.
func (k *Keeper) Kept(ctx context.Context) (Profile, bool, error) { return k.get(ctx, false) }

func (k *Keeper) get(ctx context.Context, probe bool) (Profile, bool, error) {
	if p, known, enough := k.current(probe); enough {
		return p, known, nil
	}
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return Profile{}, false, ctx.Err()
	}
	p, known, enough := k.current(probe)
	if enough {
		return p, known, nil
	}
	if err := k.look(ctx); err != nil {
		return Profile{}, false, err
	}
	if p, known, enough = k.current(probe); !enough {
		found, err := k.config.Run(ctx)
		switch {
		case ctx.Err() != nil:
			return Profile{}, false, ctx.Err()
		case err != nil:
			k.failed()
		default:
			k.keep(ctx, func(Profile) Profile { return found })
		}
		p, known, _ = k.current(false)
	}
	return p, known, nil
}

// current returns what is known, and whether there is no need to find out more first.
func (k *Keeper) current(probe bool) (p Profile, known, enough bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known != nil {
		return k.config.Given.over(*k.known), true, true
	}
	// After a failure there is one more probe, when the service serves calls again.
	idle := k.failures > 1 || k.failures == 1 && !k.served
	return k.config.Given.over(Profile{}), false, k.looked && (!probe || idle)
}

func (k *Keeper) failed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failures++
	k.served = false
}

// look asks the Host for the profile.
func (k *Keeper) look(ctx context.Context) error {
	raw, err := k.config.Host.Profile(ctx, k.Endpoint(), k.config.Model)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.looked = true; raw == nil || k.known != nil {
		return nil
	}
	var p Profile
	if err := json.Unmarshal(raw, &p); err != nil {
		return sdk.Invalid(fmt.Errorf("the profile of %s that is kept cannot be read: %w; racflow model profiles names its file: mend or remove that", k.config.Model, err))
	}
	k.known = &p
	return nil
}

// keep changes the profile, and keeps it where that made it another one.
func (k *Keeper) keep(ctx context.Context, change func(Profile) Profile) (changed bool) {
	k.store.Lock()
	defer k.store.Unlock()
	k.mu.Lock()
	var before Profile
	if k.known != nil {
		before = *k.known
	}
	p := change(before)
	if changed = p != before; changed {
		k.known = &p
	}
	k.mu.Unlock()
	if !changed {
		return false
	}
	raw, err := json.Marshal(p)
	if err == nil {
		err = k.config.Host.KeepProfile(ctx, k.Endpoint(), k.config.Model, raw)
	}
	if err != nil && ctx.Err() == nil {
		k.config.Warn("profile", "what was found out about the model cannot be kept, and will be found out again", "model", k.config.Model, "error", err)
	}
	return true
}

// Probe probes the model anew, whatever is known of it, and keeps what it finds. Its error
// is that of a call.
func (k *Keeper) Probe(ctx context.Context) (Profile, error) {
	p, err := k.config.Run(ctx)
	if err == nil {
		k.keep(ctx, func(Profile) Profile { return p })
	}
	return p, err
}
